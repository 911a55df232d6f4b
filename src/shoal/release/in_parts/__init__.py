"""Releases in parts: the stages of each method for tables too large for memory, and the run that joins them."""
