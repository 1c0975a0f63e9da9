"""The test's producer and its journal."""
