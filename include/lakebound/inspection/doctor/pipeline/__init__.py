"""The doctor's facts and rules for a pipeline of Lakebound."""
