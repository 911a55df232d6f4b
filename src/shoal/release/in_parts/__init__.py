"""Releases of tables that are never in memory as a whole: the stages of each method, and the run that joins them."""
