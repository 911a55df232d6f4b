"""`python -m benchmarks.units`: bounding the rows of a patient against sharing ε among all of them.

`--linked` measures releases in which the rows of a unit belong together (`unit_columns`), of stays and of a survey.

Errors are against the exact figures of all 20,000 stays, so they include the bias of the rows that a bound leaves out.
"""

from __future__ import annotations

import argparse
import tomllib
import warnings
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import shoal
from examples import households
from examples.hospital import MOST, SCHEMA, stays
from shoal.query import answer, parse, prepare

NUMBERS = ("age", "days", "cost")
# public edges for the tables of pairs
EDGES = {
    "age": (0, 20, 40, 60, 75, 101),
    "days": (0, 1, 2, 4, 8, 61),
    "cost": (0, 2_000, 3_000, 4_500, 7_000, 40_001),
}
BOUNDS = (1, 2, 3, 5, 10)


def schema_of(bound: int | None) -> shoal.Schema:
    """The schema of the extract with a bound, or with the largest number of rows instead."""
    raw: dict[str, Any] = tomllib.loads(SCHEMA)
    raw["attribute"] = [one for one in raw["attribute"] if one["name"] != "admission"]
    unit = raw["attribute"][0]
    del unit["bound"]
    unit |= {"max_rows": MOST} if bound is None else {"bound": {"rows": bound}}
    return shoal.Schema.from_dict(raw)


def tables_of(data: pd.DataFrame) -> dict[tuple[str, str], pd.Series]:
    """The shares of rows by two columns, for all pairs."""
    cut = {
        name: pd.cut(data[name], list(EDGES[name]), right=False).astype(str) if name in EDGES else data[name]
        for name in data.columns
        if name not in ("patient", "admission")
    }
    pairs = combinations(sorted(cut), 2)
    return {pair: pd.crosstab(cut[pair[0]], cut[pair[1]], normalize=True).stack() for pair in pairs}


def distance(first: dict[tuple[str, str], pd.Series], other: dict[tuple[str, str], pd.Series]) -> float:
    """The total variation distance of two tables, on average over all pairs of columns."""
    return float(np.mean([first[pair].sub(other[pair], fill_value=0).abs().sum() / 2 for pair in first]))


def errors(data: pd.DataFrame, bound: int | None, epsilon: str, runs: int) -> tuple[float, ...]:
    """Rows that took part, and the errors of means in answers and releases and of pair tables, on average over runs."""
    schema, spread = schema_of(bound), data[list(NUMBERS)].std()
    truth, pairs = data[list(NUMBERS)].mean(), tables_of(data)
    found = []
    for _ in range(runs):
        table = prepare(data, schema, "add-remove")
        answers = {
            name: answer(
                parse({"kind": "mean", "column": name, "epsilon": str(Fraction(epsilon) / 3)}, table.facts),
                table,
            ).value
            for name in NUMBERS
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = shoal.protect(data, schema, epsilon=epsilon)
        means = release.data[list(NUMBERS)].mean()
        found.append(
            (
                float(table.n),
                _rms((pd.Series(answers) - truth) / spread),
                _rms((means - truth) / spread),
                distance(pairs, tables_of(release.data)),
            )
        )
    return tuple(map(float, np.mean(found, axis=0)))


def _rms(values: pd.Series) -> float:
    return float(np.sqrt((values.astype(float) ** 2).mean()))


def bias(data: pd.DataFrame, bound: int | None) -> tuple[float, float]:
    """The errors of means and pair tables that the rows left out make alone, without noise."""
    if bound is None:
        return 0.0, 0.0
    kept = data.groupby("patient").head(bound)
    means = (kept[list(NUMBERS)].mean() - data[list(NUMBERS)].mean()) / data[list(NUMBERS)].std()
    return _rms(means), distance(tables_of(data), tables_of(kept))


def page(epsilons: Sequence[str], bounds: Sequence[int], runs: int) -> str:
    data = stays()
    most = data["patient"].value_counts().max()
    lines = [
        f"{len(data):,} stays of {data['patient'].nunique():,} patients, 1 to {most} each; {runs} runs.",
        "Errors of means in standard deviations of a column, errors of pair tables as total variation distance; in "
        "brackets, how many times smaller than with max_rows. Bias: the same errors without noise.",
        "",
        "| ε per patient | rows of a patient | rows kept | means, answers | means, release | bias of means "
        "| pair tables, release | bias of pair tables |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for epsilon in epsilons:
        usual = errors(data, None, epsilon, runs)
        for bound in (None, *bounds):
            rows, *own = usual if bound is None else errors(data, bound, epsilon, runs)
            less = ["" if bound is None else f" ({u / e:.1f})" for e, u in zip(own, usual[1:], strict=True)]
            first, second, third = (f"{e:.4f}{more}" for e, more in zip(own, less, strict=True))
            of_means, of_pairs = bias(data, bound)
            what = f"max_rows = {MOST}" if bound is None else f"bound = {bound}"
            lines.append(
                f"| {epsilon} | {what} | {rows:,.0f} | {first} | {second} | {of_means:.4f} | {third} | {of_pairs:.4f} |"
            )
    return "\n".join(lines)


# the extracts on which constants were not chosen
_SEED = 43
LAGGED = ("admission", "days", "cost")
PERSONS = {
    "age": (0, 7, 18, 30, 45, 60, 75, 101),
    "income": (0, 10_000, 20_000, 30_000, 45_000, 60_000, 90_000, 200_001),
}
OF_HOUSEHOLD, OF_PERSON = ("region", "income", "owner"), ("relation", "age", "sex", "work")


def consecutive(data: pd.DataFrame) -> np.ndarray:
    """Correlations of the columns of a stay with those of the patient's next stay."""
    ordered = data.sort_values(["patient", "admission"], kind="stable")
    after = ordered.shift(-1)
    same = (ordered["patient"] == after["patient"]).to_numpy()
    columns = list(LAGGED)
    both = np.corrcoef(ordered[columns][same].to_numpy(float).T, after[columns][same].to_numpy(float).T)
    return both[: len(columns), len(columns) :]


def stays_linked(epsilon: str, bound: int, runs: int, method: str, delta: str | None) -> str:
    raw: dict[str, Any] = tomllib.loads(SCHEMA)
    # releases of whole units keep no rules
    del raw["rule"]
    raw["attribute"][0]["bound"] = {"rows": bound}
    data, schema = stays(seed=_SEED), shoal.Schema.from_dict(raw)
    kept = data.sample(frac=1, random_state=1)
    kept = kept[kept.groupby("patient").cumcount() < bound]
    truth, spread = consecutive(kept), kept[list(NUMBERS)].std()
    found = []
    for _ in range(runs):
        options: dict[str, Any] = {
            "unit_columns": ["age", "region"],
            "unit_order": "admission",
            "neighbours": "add-remove",
        }
        if delta is not None:
            options["delta"] = delta
        made = shoal.protect(data, schema, method=method, epsilon=epsilon, **options).data
        off = np.abs(consecutive(made) - truth)
        means = _rms((made[list(NUMBERS)].mean() - kept[list(NUMBERS)].mean()) / spread)
        found.append((np.diag(off).max(), off.max(), off.mean(), means))
    own, most, usual, means = np.mean(found, axis=0)
    return f"| {method} | {epsilon} | {bound} | {own:.3f} | {most:.3f} | {usual:.3f} | {means:.3f} |"


def shares_of(data: pd.DataFrame, column: str) -> pd.Series:
    own = data[column]
    if column in PERSONS:
        own = pd.cut(own, list(PERSONS[column]), right=False).astype(str)
    return own.value_counts(normalize=True)


def apart(first: pd.Series, other: pd.Series) -> float:
    return float(first.sub(other, fill_value=0).abs().sum() / 2)


def composition(data: pd.DataFrame) -> pd.Series:
    """The shares of households by numbers of children under 18, and of persons."""
    kids = (data["age"] < 18).groupby(data["household"]).agg(["sum", "size"])
    return kids.value_counts(normalize=True)


def survey_linked(epsilon: str, runs: int, method: str, delta: str | None) -> list[str]:
    data, schema = (
        households.persons(seed=_SEED),
        shoal.Schema.from_dict(tomllib.loads(households.SCHEMA)),
    )
    one = data.drop_duplicates("household")
    lines = []
    linked = {"unit_columns": list(OF_HOUSEHOLD), "unit_order": "relation"}
    for options in ({}, linked):
        found = []
        for _ in range(runs):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                settings = {"method": method, "epsilon": epsilon, "neighbours": "add-remove", **options}
                if delta is not None:
                    settings["delta"] = delta
                made = shoal.protect(data, schema, **settings).data
            errors = [np.mean([apart(shares_of(data, c), shares_of(made, c)) for c in OF_PERSON])]
            rows = [apart(shares_of(data, c), shares_of(made, c)) for c in OF_HOUSEHOLD]
            errors.append(np.mean(rows))
            if options:
                assert int(made.groupby("household")[list(OF_HOUSEHOLD)].nunique().to_numpy().max()) == 1
                each = made.drop_duplicates("household")
                errors.append(np.mean([apart(shares_of(one, c), shares_of(each, c)) for c in OF_HOUSEHOLD]))
                sizes = [f["household"].value_counts().value_counts(normalize=True) for f in (data, made)]
                errors += [apart(*sizes), apart(composition(data), composition(made))]
            found.append(errors)
        means = [f"{value:.4f}" for value in np.mean(found, axis=0)]
        means += [""] * (5 - len(means))
        name = "linked" if options else "unlinked"
        lines.append(f"| {method} | {epsilon} | {name} | {' | '.join(means)} |")
    return lines


def linked_page(epsilons: Sequence[str], runs: int, methods: Sequence[str], delta: str | None) -> str:
    lines = [
        f"Stays, {runs} runs: correlations of a stay with the patient's next one, errors against stays bounded alike.",
        "",
        "| method | ε per patient | bound | same column, largest | any two, largest | any two, mean | means, in sd |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(stays_linked(epsilon, 3, runs, method, delta) for method in methods for epsilon in epsilons),
        "",
        f"Households, {runs} runs: total variation distances of single columns. "
        "Attributes of a household were equal in all its rows.",
        "",
        "| method | ε per household | release | of persons | of households, by row | of households | sizes "
        "| sizes and children |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method in methods:
        for epsilon in epsilons:
            lines += survey_linked(epsilon, runs, method, delta)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", default="1", help="ε per patient, several separated by commas")
    parser.add_argument("--quick", action="store_true", help="a bound of 3 only")
    parser.add_argument("--linked", action="store_true", help="releases with unit_columns")
    parser.add_argument("--methods", default="pairs-dp,tree-dp", help="of --linked")
    parser.add_argument("--delta", help="δ of --linked, for pairs-dp")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    if given.linked:
        print(linked_page(given.epsilon.split(","), given.runs, given.methods.split(","), given.delta))
        return
    print(page(given.epsilon.split(","), [3] if given.quick else BOUNDS, given.runs))


if __name__ == "__main__":
    main()
