"""The private partition tree: cuts, intervals, boxes, counts, rows, in this order."""
