"""Real tables in a temporary folder, what is done to them, and values for them."""
