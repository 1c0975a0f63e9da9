"""Maintenance of a pipeline's tables: health in, plan out, both pure; the run is at the edge."""
