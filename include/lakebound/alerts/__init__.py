"""Alerts: one model for all that can be wrong, from the findings that each part writes to the messages that people get.

Other rooms import ``doctor_findings``, ``load``, ``look``, ``model``, ``outbox``, ``round``, ``routes``, ``store``,
``stream_findings``, ``try_out`` and ``wording``.
"""
