"""Actors that are suspended at each file operation while others run, and the judge of what they leave."""
