"""The k-anonymity family: methods without a budget, whose released table itself satisfies a condition."""
