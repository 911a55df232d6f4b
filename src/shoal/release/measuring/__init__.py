"""Measures of tables that are never in memory as a whole: aggregates are made by tasks, and put together here.

The tasks run where those of a release do (`shoal.release.engines`). What comes back is counts, sums and products, and
the same functions as in memory make the measures of them.
"""
