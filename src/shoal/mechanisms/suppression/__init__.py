"""Local suppression: empty as few quasi-identifier cells as possible to reach k-anonymity."""
