"""Methods: how a described table and a budget become a protected table."""
