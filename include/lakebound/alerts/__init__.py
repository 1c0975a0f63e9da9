"""Alerts: one model for everything that can be wrong, from the findings that each part writes to the messages that people get."""
