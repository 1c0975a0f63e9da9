"""What it takes to run docker-compose.yaml on a machine that reaches no registry of images, and whose Docker has no bridge."""
