"""Evaluation in parts: measures of tables too large for memory, from counts made by tasks and merged here."""
