"""Recorded file effects of real streams, and what reads them."""
