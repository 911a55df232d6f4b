"""Columns: what is declared about a table and its records on public lattices."""
