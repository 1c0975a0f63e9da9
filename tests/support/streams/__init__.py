"""Applications and command lines of tests: how they are started, watched and ended."""
