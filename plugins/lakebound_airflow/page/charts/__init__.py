"""Charts of one pipeline over time: from rollups and small files to SVG, on the server, without a library."""
