"""Measures of tables that are never in memory as a whole: tasks count, and the totals are put together here."""
