"""Kinds of targets beside tables: one module for each; ``lakebound.landing.target_kind`` says what a module has."""
