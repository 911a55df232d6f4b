"""The edge: a path or a frame comes in, arrays go on; arrays come back, the same kind of frame or file goes out."""

from shoal.io.codebook import Codebook, Variable
from shoal.io.column_types import ColumnType, known_type, type_of, type_words
from shoal.io.files import check_writable, read, read_columnwise, write
from shoal.io.formats import ENDINGS, FORMATS, SUFFIXES, Format, format_of, known_format
from shoal.io.table import Table, first_row, with_types, without_texts

__all__ = [
    "ENDINGS",
    "FORMATS",
    "SUFFIXES",
    "Codebook",
    "ColumnType",
    "Format",
    "Table",
    "Variable",
    "check_writable",
    "first_row",
    "format_of",
    "known_format",
    "known_type",
    "read",
    "read_columnwise",
    "type_of",
    "type_words",
    "with_types",
    "without_texts",
    "write",
]
