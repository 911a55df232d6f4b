"""The k-anonymity family as mechanisms: no budget, but a condition that the released table itself satisfies."""
