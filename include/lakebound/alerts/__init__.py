"""Alerts: one model for all that can be wrong, from the findings that each part writes to the messages that people get."""
