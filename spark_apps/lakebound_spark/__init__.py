"""What runs inside Spark: the streaming application, and the applications that work beside it."""
