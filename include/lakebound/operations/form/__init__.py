"""The form of what a person approves before it is done: what was asked for, its plan as a page, and what an approval does.

Other rooms import ``asked`` and ``kinds``.
"""
