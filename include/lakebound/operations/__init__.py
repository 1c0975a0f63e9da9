"""What commits beside the stream: maintenance, recovery, replay and release of quarantined records."""
