"""Three tables as stewards have them, about people who do not exist: weights, repeated persons, gaps, decimal commas,
accents. Each with what is publicly known about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from shoal.survey import survey

TOWNS = ("Peñalolén", "Ñuñoa", "Las Condes", "La Reina")


def register(path: Path, people: int = 1500) -> None:
    """A register with weights and decimal commas, in what is released too, a town missing here and there."""
    table = survey(people, seed=1).to_pydict()
    lines = ['"persnum";"wght";"edad";"comuna";"horas"']
    for row in range(people):
        town = "" if row % 100 == 37 else TOWNS[row % 7 % 4]
        weight = f"{1 + row % 7 / 10:.1f}".replace(".", ",")
        hours = f"{table['hours per week'][row] - row % 2 / 2:.1f}".replace(".", ",")
        lines.append(f'"N{row:06d}";{weight};{table["age"][row]};"{town}";{hours}')
    path.write_text("\n".join(lines) + "\n", "utf-8")


def visits(path: Path, rows: int = 1800) -> None:
    """Visits: a patient has up to three rows."""
    rng = np.random.default_rng(2)
    lines = ['"patient","age","ward","minutes"']
    for row in range(rows):
        patient = row // 3
        ward, minutes = rng.choice(["eye", "heart", "skin"]), int(rng.integers(5, 90))
        lines.append(f'"P{patient:04d}",{20 + patient % 60},"{ward}",{minutes}')
    path.write_text("\n".join(lines) + "\n", "utf-8")


def wages(path: Path, people: int = 1500) -> None:
    """An export with badges, remarks and texts that stand for a missing value."""
    table = survey(people, seed=3).to_pydict()
    lines = ['"badge","sector","hours","remarks"']
    for row in range(people):
        sector = "k.A." if row % 50 == 3 else table["sector"][row]
        hours = table["hours per week"][row]
        lines.append(f'"B-{row * 7919 % 100_000:05d}","{sector}",{hours},"spoke about shift {row}"')
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _entry(name: str, **facts: object) -> str:
    lines = [
        f"{key} = {value}" if not isinstance(value, str) else f'{key} = "{value}"'
        for key, value in {"name": name, "source": "questionnaire", **facts}.items()
    ]
    return "\n".join(["[[attribute]]", *lines, ""])


_SECTORS = ["agriculture", "industry", "trade", "health", "education", "administration", "none"]
# how each is made, what is publicly known about it, and what has to be said on the command line
TABLES: Mapping[str, tuple[Callable[[Path], None], str, tuple[str, ...]]] = {
    "register": (
        register,
        '[file]\ndecimal = ","\n\n'
        + _entry("persnum", kind="nominal", role="identifier", type="text")
        + _entry("wght", role="weight", type="decimal", decimals=1, lo=0, hi=10)
        + _entry("edad", type="integer", lo=18, hi=99)
        + _entry("comuna", type="text", values=list(TOWNS), missing="category")
        + _entry("horas", type="decimal", decimals=1, lo=-1, hi=90),
        (),
    ),
    "visits": (
        visits,
        _entry("patient", kind="nominal", role="unit", type="text", max_rows=3)
        + _entry("age", type="integer", lo=0, hi=120)
        + _entry("ward", type="text", values=["eye", "heart", "skin"])
        + _entry("minutes", type="integer", lo=0, hi=120),
        (),
    ),
    "wages": (
        wages,
        _entry("badge", kind="nominal", role="identifier", type="text")
        + _entry("sector", type="text", values=_SECTORS, missing="category")
        + _entry("hours", type="integer", lo=0, hi=90)
        + _entry("remarks", kind="nominal", role="identifier", type="text"),
        ("--na", "k.A."),
    ),
}
