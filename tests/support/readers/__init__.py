"""Every reader of both formats, asked the same predicates of the same generated tables."""
