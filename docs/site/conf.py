"""Sphinx reads this: how the pages become a site. ``make docs`` calls it with every warning as an error."""

from __future__ import annotations

project = "Lakebound"
author = "the authors of Lakebound"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = "Lakebound"
html_show_copyright = False

# The pages are written for GitHub: its anchors of headings, and its fences for pictures.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
myst_links_external_new_tab = True

# A piece of JSON with … in it, or of two languages, is shown without colours. Pages of benchmarks begin where they like.
suppress_warnings = ["misc.highlighting_failure"]
