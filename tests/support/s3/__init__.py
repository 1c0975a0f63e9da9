"""A small S3 server of the tests' own: conditional writes without races, signatures, policies, faults, a log."""
