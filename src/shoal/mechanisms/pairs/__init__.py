"""pairs-dp over private trees: single attributes, contrasts of pairs, one joint model, and synthetic rows."""
