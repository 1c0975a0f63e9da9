"""Channels: one module for each way to reach people; ``lakebound.alerts.channel`` says what a module has."""
