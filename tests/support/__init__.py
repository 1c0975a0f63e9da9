"""What tests share. The vocabulary is described in tests/README.md."""
