#!/usr/bin/env bash
. "$(dirname "$0")/../prepare.sh"

lakebound create-topic sensor_minutes --partitions 2
lakebound produce sensor_readings --topic sensor_minutes --count 20000 --rate 0
lakebound run sensor_minutes --freshness available_now
lakebound query "select \"window\", sensor, readings, total, highest from iot.sensor_minutes order by \"window\", sensor limit 10"
lakebound quarantine sensor_minutes
lakebound prove sensor_minutes
