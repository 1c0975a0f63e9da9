"""Schema registries with Confluent's API: schemas by what records say of them, kept with the pipeline's state.

Other rooms import ``client``, ``finder`` and ``finding``.
"""
