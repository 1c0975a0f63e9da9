#!/usr/bin/env bash
. "$(dirname "$0")/../prepare.sh"

lakebound create-topic device_readings --partitions 4
lakebound produce sensor_readings --topic device_readings --count 20000 --rate 0
lakebound run device_readings --freshness available_now
lakebound query "select sensor, count(*) as readings, sum(cast(is_anomaly as int)) as anomalies from iot.device_readings group by sensor"
lakebound query "select device_id, sensor, event_time, value, battery_percent, anomalies from iot.device_readings where is_anomaly limit 10"
lakebound prove device_readings --deep
