"""Topics as targets: an application without Spark that lands in one, and who reads what it wrote."""
