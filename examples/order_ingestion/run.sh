#!/usr/bin/env bash
. "$(dirname "$0")/../prepare.sh"

lakebound create-topic shop_orders --partitions 4
lakebound produce orders --topic shop_orders --count 5000 --rate 0 --bad-share 0.01
lakebound run shop_orders --freshness available_now
lakebound query "select currency, count(*) as orders, sum(total) as total from delta.shop.orders group by currency order by currency"
lakebound query "select total_is_right, count(*) as orders from iceberg.shop.orders group by total_is_right"
lakebound quarantine shop_orders
lakebound prove shop_orders --deep
