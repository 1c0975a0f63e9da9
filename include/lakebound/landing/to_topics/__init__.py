"""Kafka topics as targets: the rows of a batch and its ledger entry, in one transaction.

Other rooms import ``ledger_record``, ``messages``, ``producer``, ``scan`` and ``target``.
"""
