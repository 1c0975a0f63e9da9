"""A real schema registry, a small one that answers as a test says, and what stands between a client and one."""
