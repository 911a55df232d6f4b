"""Local suppression: cells of quasi-identifiers come in, the fewest of them are released empty."""
