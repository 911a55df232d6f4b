"""`python -m papers PAPER [--quick] [--out DIR]`: reproduce a paper; the same as `shoal reproduce` in a checkout."""

from __future__ import annotations

import sys

from shoal.cli import run

if __name__ == "__main__":
    sys.exit(run(["reproduce", *sys.argv[1:]]))
