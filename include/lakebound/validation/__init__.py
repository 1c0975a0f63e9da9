"""Data quality of exactly what landed: each range of commits is validated once. Knows neither Spark nor Great Expectations."""
