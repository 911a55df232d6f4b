"""Other ways to run the same method: here, tables that do not fit into memory."""

from shoal.engine.columns import carry_out_columnwise, protect_file

__all__ = ["carry_out_columnwise", "protect_file"]
