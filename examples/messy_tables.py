"""Write three synthetic tables in the formats of administrative files: python examples/messy_tables.py

comunas.csv    a register: Latin-1, semicolons, decimal commas, dates with points, some missing ages
visits.xlsx    a workbook with two sheets, in which a patient has several rows
wages.csv.gz   a compressed export: weights, badges, remarks, texts for missing values, a cell that contains a formula
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import openpyxl

from shoal.survey import survey

TOWNS = ("Peñalolén", "Ñuñoa", "Las Condes", "La Reina")


def comunas(path: Path, people: int = 2700) -> None:
    table = survey(people, seed=1).to_pydict()
    lines = ["persnum;wght;age;born;town;income"]
    for row in range(people):
        age, income = table["age"][row], table["income"][row]
        # one age in a hundred is missing
        written = "" if row % 100 == 37 else str(age)
        born = f"{1 + row % 28:02d}.{1 + row % 12:02d}.{2024 - age}"
        weight = f"{1 + row % 7 / 10:.1f}".replace(".", ",")
        amount = f"{income:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")
        lines.append(f"{100_000 + row};{weight};{written};{born};{TOWNS[row % 4]};{amount}")
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("latin-1"))


def visits(path: Path, rows: int = 600) -> None:
    rng = np.random.default_rng(2)
    book = openpyxl.Workbook()
    about = book.active
    about.title = "about"
    about.append(["Outpatient visits, made up"])
    sheet = book.create_sheet("visits")
    sheet.append(["patient", "age", "ward", "minutes"])
    for row in range(rows):
        patient = row // 3
        sheet.append(
            [
                f"P{patient:04d}",
                int(20 + patient % 60),
                str(rng.choice(["eye", "heart", "skin"])),
                int(rng.integers(5, 90)),
            ]
        )
    book.save(path)


def wages(path: Path, people: int = 1500) -> None:
    table = survey(people, seed=3).to_pydict()
    lines = ["badge,weight,sector,hours per week,wage,remarks"]
    for row in range(people):
        wage = "k.A." if row % 50 == 3 else f"{table['income'][row] / 12:.2f}"
        remark = "=HYPERLINK(A1)" if row == 7 else f"spoke to him about shift {row} on the phone"
        hours = table["hours per week"][row]
        lines.append(
            f"B-{row * 7919 % 100_000:05d},{1 + row % 9 / 10:.1f},{table['sector'][row]},{hours},{wage},{remark}"
        )
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))


if __name__ == "__main__":
    comunas(Path("comunas.csv"))
    visits(Path("visits.xlsx"))
    wages(Path("wages.csv.gz"))
    print("comunas.csv, visits.xlsx, wages.csv.gz")
