"""tree-dp over private partition trees: cuts, intervals, boxes, counts, and synthetic rows."""
