"""Pairs over private trees: single attributes, contrasts of pairs, one model of both, rows, in this order."""
