"""Local suppression: quasi-identifiers come in, the same with the fewest cells emptied leave."""
