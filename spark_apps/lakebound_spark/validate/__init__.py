"""The validation application: Great Expectations judges what landed.

Other rooms import ``application``.
"""
