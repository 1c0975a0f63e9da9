"""The quarantine of a pipeline: what is in it and why, and the release of what fits today."""
