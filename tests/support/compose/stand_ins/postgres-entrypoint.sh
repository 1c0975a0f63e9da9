# What the entry point of PostgreSQL's image does with the settings that docker-compose.yaml gives it.
set -e
if [ "$(id -u)" = 0 ]; then
  POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
  export POSTGRES_PASSWORD
  chown postgres "$PGDATA" /var/run/postgresql
  chmod 0700 "$PGDATA"
  exec gosu postgres bash "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --encoding=UTF8 --username="$POSTGRES_USER" --auth-host=scram-sha-256 --auth-local=trust --pwfile=<(echo "$POSTGRES_PASSWORD") > /dev/null
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait --options="-c listen_addresses=''" start > /dev/null
  createdb --username="$POSTGRES_USER" --owner="$POSTGRES_USER" "$POSTGRES_DB" 2> /dev/null || true
  pg_ctl --wait stop > /dev/null
fi
unset POSTGRES_PASSWORD
exec postgres -c listen_addresses='*'
