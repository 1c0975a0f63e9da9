#!/usr/bin/env bash
. "$(dirname "$0")/../prepare.sh"

hour=$(date -u +%Y-%m-%dT%H)
lakebound create-topic hourly_orders --partitions 4
lakebound produce orders --topic hourly_orders --count 5000 --rate 0
lakebound run hourly_orders --freshness available_now
lakebound prove hourly_orders
python examples/hourly_report/report.py --hour "$hour" --output "$LAKEBOUND_HOME/examples/reports"
