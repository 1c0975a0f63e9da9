"""The validation application: Great Expectations judges what landed."""
