"""Repairs that a person approves: a plan from facts (pure), and its application while its facts still hold."""
