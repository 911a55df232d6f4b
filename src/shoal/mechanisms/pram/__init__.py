"""PRAM: every released column passes a declared matrix over its values."""
