"""Power cuts: work is recorded, and every state that a cut may leave is judged."""
