#!/usr/bin/env bash
. "$(dirname "$0")/../prepare.sh"

# Returns when the table has as many orders.
landed() {
  { set +x; } 2> /dev/null
  for _ in $(seq 120); do
    lakebound query "select count(*) as orders from delta.shop.avro_orders" 2> /dev/null | tr -d ',' | grep -qw "$1" && return
    sleep 1
  done
  echo "avro_orders: there are no $1 orders after two minutes; see lakebound status avro_orders" >&2
  exit 1
}

lakebound create-topic avro_orders --partitions 4
lakebound produce orders --topic avro_orders --avro-registry shop --avro-schema "$example/schemas/order-1.avsc" --count 2000 --rate 0
lakebound run avro_orders --detach
trap 'lakebound stop avro_orders > /dev/null' EXIT
landed 2000
set -x
lakebound produce orders --topic avro_orders --avro-registry shop --avro-schema "$example/schemas/order-2.avsc" --count 1000 --rate 0 --seed 2
landed 3000
set -x
lakebound query "select channel, count(*) as orders, sum(total) as total from delta.shop.avro_orders group by channel order by channel"
lakebound status avro_orders
lakebound prove avro_orders --deep
