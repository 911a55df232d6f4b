"""From a prepared table to files that may be published."""
