# Read by each example's run.sh: the example's own pipelines, and the applications with the example's transforms beside them.

set -euo pipefail
example=$(cd "$(dirname "$0")" && pwd)
cd "$example/../.."
export PATH="$PWD/.venv/bin:$PATH"
export LAKEBOUND_HOME="${LAKEBOUND_HOME:-$PWD/.lakebound}"
export LAKEBOUND_PIPELINES="$example/pipelines"
export LAKEBOUND_APPS="$LAKEBOUND_HOME/examples/$(basename "$example")"

mkdir -p "$LAKEBOUND_APPS"
cp -R spark_apps/. "$LAKEBOUND_APPS"
if [ -d "$example/transforms" ]; then
  cp "$example"/transforms/*.py "$LAKEBOUND_APPS/transforms/"
fi

# From here on, run.sh shows each command before its output.
PS4='
$ '
set -x
