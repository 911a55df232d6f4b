"""The public data sets of the repository as plain files, unpacked on first use."""

from __future__ import annotations

import gzip
import os
import tempfile
from functools import cache
from pathlib import Path

PACKED = Path(__file__).parents[1] / "datasets"
UNPACKED = PACKED / "unpacked"


@cache
def data_folder() -> Path:
    """A folder with every file of `datasets/`, tables unpacked: `adult.csv`, `nist/national2019.csv`, `offices/...`."""
    for packed in sorted(path for path in PACKED.rglob("*") if path.is_file()):
        name = packed.relative_to(PACKED)
        if UNPACKED in packed.parents or name.suffix == ".md":
            continue
        plain = UNPACKED / (name.with_suffix("") if name.suffix == ".gz" else name)
        if not plain.exists() or plain.stat().st_mtime_ns < packed.stat().st_mtime_ns:
            _unpack(packed, plain)
    return UNPACKED


def _unpack(packed: Path, plain: Path) -> None:
    """Several processes may do this at once: each writes aside and renames."""
    plain.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=plain.parent, prefix=f".{plain.name}.")
    content = packed.read_bytes()
    with os.fdopen(handle, "wb") as target:
        target.write(gzip.decompress(content) if packed.suffix == ".gz" else content)
    Path(aside).replace(plain)
