from shoal.io.binary_files import ROW as ROW
from shoal.io.binary_files import Frozen as Frozen
from shoal.io.binary_files import Piece as Piece
from shoal.io.binary_files import frozen as frozen
from shoal.io.binary_files import parquet_files as parquet_files
from shoal.io.binary_files import parquet_rows as parquet_rows
from shoal.io.binary_files import refuse_log as refuse_log
from shoal.io.binary_files import refuse_logged as refuse_logged
from shoal.io.cell_types import DAY_TYPES as DAY_TYPES
from shoal.io.cell_types import ColumnType as ColumnType
from shoal.io.cell_types import arrow_type as arrow_type
from shoal.io.cell_types import known_type as known_type
from shoal.io.cell_types import type_of as type_of
from shoal.io.cell_types import type_words as type_words
from shoal.io.common import MOST_BYTES as MOST_BYTES
from shoal.io.common import DateFormat as DateFormat
from shoal.io.common import dumps as dumps
from shoal.io.common import load as load
from shoal.io.common import private_file as private_file
from shoal.io.common import private_folder as private_folder
from shoal.io.common import private_text as private_text
from shoal.io.common import unpacked_sizes as unpacked_sizes
from shoal.io.files import check_internal as check_internal
from shoal.io.files import check_output as check_output
from shoal.io.files import check_writable as check_writable
from shoal.io.files import finished as finished
from shoal.io.files import is_parquet as is_parquet
from shoal.io.files import new_parents as new_parents
from shoal.io.files import not_an_address as not_an_address
from shoal.io.files import place as place
from shoal.io.files import read as read
from shoal.io.files import read_columnwise as read_columnwise
from shoal.io.files import remove_unfinished as remove_unfinished
from shoal.io.files import scratch as scratch
from shoal.io.files import staged as staged
from shoal.io.files import stoppable as stoppable
from shoal.io.files import unfinished as unfinished
from shoal.io.files import unless_done as unless_done
from shoal.io.files import write as write
from shoal.io.formats import FORMATS as FORMATS
from shoal.io.formats import Content as Content
from shoal.io.formats import Format as Format
from shoal.io.formats import Manner as Manner
from shoal.io.formats import ReadOptions as ReadOptions
from shoal.io.formats import find_format as find_format
from shoal.io.formats import format_of as format_of
from shoal.io.formats import known_format as known_format
from shoal.io.formats import register_format as register_format
from shoal.io.formats import table_name as table_name
from shoal.io.formats import titles as titles
from shoal.io.statistical_files import Codebook as Codebook
from shoal.io.statistical_files import Variable as Variable
from shoal.io.table import Table as Table
from shoal.io.table import check_doubts as check_doubts
from shoal.io.table import content_digest as content_digest
from shoal.io.table import fingerprint as fingerprint
from shoal.io.table import first_row as first_row
from shoal.io.table import is_plain as is_plain
from shoal.io.table import is_spark_frame as is_spark_frame
from shoal.io.table import with_types as with_types
from shoal.io.table import without_codes as without_codes
from shoal.io.table import without_texts as without_texts
from shoal.io.text_files import Conventions as Conventions
from shoal.io.text_files import first_formula as first_formula

__all__ = [
    "Content",
    "Conventions",
    "Format",
    "read",
    "register_format",
    "write",
]
