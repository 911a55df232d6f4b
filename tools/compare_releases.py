"""Does a change of structure change a release? Every preset on one table and seed, in two checkouts, byte for byte.

    python -m tools.compare_releases BEFORE AFTER [--rows 400] [--seed 7] [--python BEFORE_PYTHON AFTER_PYTHON]

BEFORE and AFTER are checkouts; each runs with its own `.venv` if it has one, otherwise with this interpreter and its
`src` in front. The table is made here, once. A preset that one checkout does not have is named.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_COLUMNS = ("age", "hours", "income", "savings")
_TOPS = (90, 80, 100_000, 500_000)
_ROLES = ("quasi-identifier", "quasi-identifier", "quasi-identifier", "confidential")
# what the presets that need more than ε and k are told; the others take what is below
_OPTIONS: dict[str, list[str]] = {
    "laplace": ["--epsilon", "1"],
    "tree-dp": ["--epsilon", "1"],
    "optimal-dp": ["--epsilon", "1"],
    "insensitive-dp": ["--epsilon", "1", "--k", "40"],
    "k-anonymity": ["--k", "10"],
    "swap-mdav": ["--k", "10"],
    "swap-ranking": ["--k", "10"],
    "anatomy": ["--k", "10"],
    "t-closeness": ["--k", "10", "--t", "2"],
}


@dataclass(frozen=True)
class Checkout:
    """A state of the code and the interpreter that runs it."""

    root: Path
    python: Path

    @classmethod
    def at(cls, root: Path, python: Path | None) -> Checkout:
        own = root / ".venv" / "bin" / "python"
        found = python or (own if own.exists() else Path(sys.executable))
        # not resolved: an environment's interpreter is a link that knows its packages by where it lies
        return cls(root.resolve(), found.absolute())

    def shoal(self, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), "-m", "shoal", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(self.root / "src")},
            capture_output=True,
            text=True,
            check=False,
        )

    def presets(self, folder: Path) -> list[str]:
        listed = self.shoal(["methods", "--json"], folder)
        if listed.returncode:
            raise SystemExit(f"{self.root}: {listed.stderr.strip()}")
        return [method["name"] for method in json.loads(listed.stdout)]


def write_table(path: Path, rows: int, seed: int) -> None:
    """Whole numbers that hang together a little, with repeated values."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(_COLUMNS)
        for _ in range(rows):
            age = draw.randint(18, 90)
            hours = draw.choice((0, 20, 35, 40, 40, 40, 60))
            income = min(100_000, int(draw.expovariate(1 / (500 * (hours + 5)))))
            lines.writerow((age, hours, income, min(500_000, int(income * draw.random() * age / 20))))


def write_schema(path: Path) -> None:
    """The last column is what a linking intruder wants to know, the others are what he has."""
    parts = [
        f'[[attribute]]\nname = "{name}"\nkind = "numeric"\nrole = "{role}"\nlo = 0\nhi = {top}\nstep = 1\n'
        for name, top, role in zip(_COLUMNS, _TOPS, _ROLES, strict=True)
    ]
    path.write_text("\n".join(parts), "utf-8")


def released(checkout: Checkout, preset: str, folder: Path, seed: int) -> str:
    """A word for the released data, or why there is none."""
    # the two may lie in folders of one name
    out = folder / hashlib.sha256(str(checkout.root).encode()).hexdigest()[:8] / preset
    out.parent.mkdir(exist_ok=True)
    options = _OPTIONS.get(preset, ["--epsilon", "1", "--k", "20"])
    if preset.startswith("xm-b"):
        options = ["--k", "20"]
    command = ["protect", "table.csv", "--schema", "schema.toml", "--method", preset, *options]
    done = checkout.shoal([*command, "--seed", str(seed), "--out", str(out)], folder)
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
    digest = hashlib.sha256()
    # anatomy has a second table
    for file in sorted(out.glob("*.csv")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--python", type=Path, nargs=2, default=(None, None), help="interpreters of the two")
    parser.add_argument("--only", nargs="*", help="presets; default all")
    arguments = parser.parse_args()
    checkouts = [
        Checkout.at(root, python)
        for root, python in zip((arguments.before, arguments.after), arguments.python, strict=True)
    ]
    same = 0
    with tempfile.TemporaryDirectory(prefix="releases-") as made:
        folder = Path(made)
        write_table(folder / "table.csv", arguments.rows, arguments.seed)
        write_schema(folder / "schema.toml")
        known = [checkout.presets(folder) for checkout in checkouts]
        every = dict.fromkeys(known[0] + known[1])
        presets = [name for name in every if name in (arguments.only or every)]
        print(f"{'preset':16} {'before':18} {'after':18} data")
        for preset in presets:
            words = [
                released(checkout, preset, folder, arguments.seed) if preset in names else "no such preset"
                for checkout, names in zip(checkouts, known, strict=True)
            ]
            equal = words[0] == words[1] and not words[0].startswith("exit")
            same += equal
            verdict = "the same" if equal else "both refuse" if words[0] == words[1] else "DIFFERENT"
            print(f"{preset:16} {words[0]:18} {words[1]:18} {verdict}", flush=True)
    print(f"{same} of {len(presets)} presets release the same bytes")
    sys.exit(same < len(presets))


if __name__ == "__main__":
    main()
