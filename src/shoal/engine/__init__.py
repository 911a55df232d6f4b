"""Other ways to run the same method: here, tables that do not fit into memory."""

from shoal.engine.columns import protect_file

__all__ = ["protect_file"]
