"""The topology of docker-compose.yaml as processes: what `make test-cluster` runs beside Spark, and how its parts are got."""
