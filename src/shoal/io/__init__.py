"""The edge: a path or a frame comes in, arrays go on; arrays come back, the same kind of frame or file goes out."""

from shoal.io.cell_types import ColumnType, known_type, type_of, type_words
from shoal.io.files import check_writable, is_parquet, read, read_columnwise, write
from shoal.io.formats import (
    FORMATS,
    Asked,
    Content,
    Format,
    Manner,
    find_format,
    format_of,
    known_format,
    register_format,
    table_name,
    titles,
)
from shoal.io.statistical_files import Codebook, Variable
from shoal.io.table import (
    Table,
    check_doubts,
    first_row,
    is_spark_frame,
    with_types,
    without_codes,
    without_texts,
)
from shoal.io.text_files import Conventions

__all__ = [
    "FORMATS",
    "Asked",
    "Codebook",
    "ColumnType",
    "Content",
    "Conventions",
    "Format",
    "Manner",
    "Table",
    "Variable",
    "check_doubts",
    "check_writable",
    "find_format",
    "first_row",
    "format_of",
    "is_parquet",
    "is_spark_frame",
    "known_format",
    "known_type",
    "read",
    "read_columnwise",
    "register_format",
    "table_name",
    "titles",
    "type_of",
    "type_words",
    "with_types",
    "without_codes",
    "without_texts",
    "write",
]
