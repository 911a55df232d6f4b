"""`shoal intervals`: confidence intervals from a published bundle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import options
from shoal.cli.command import Flag, messages, print_json, results
from shoal.errors import OptionError

if TYPE_CHECKING:
    from shoal.inference import Interval

# widths of the columns of the printed table
_NAME, _NUMBER = 44, 11


def intervals_flags() -> tuple[Flag, ...]:
    """The options of `shoal intervals`."""
    kinds = (
        ("mean", "Mean, such as income or 'income by sex'.", "COLUMN"),
        ("share", "Share of rows, such as 'income > 50000'.", "CONDITION"),
        ("quantile", "Quantiles, such as 0.5,0.9:income.", "Q:COLUMN"),
        ("table", "Table of two columns, such as sex,region.", "A,B"),
        ("corr", "Correlation, such as age,hours.", "A,B"),
        ("formula", "Linear regression, such as 'hours ~ age'.", "FORMULA"),
        ("logit", "Logistic regression, such as 'rich ~ age'.", "FORMULA"),
    )
    free = "Statistics as text, such as 'mean(income) by sex' or 'hours ~ age + C(sex)'."
    number = "Write this many replicate weights for survey software."
    used = "With --replicates: the columns to use, a,b,c."
    return (
        Flag("bundle", "Folder that 'shoal protect' wrote.", "input", Path, argument=True, common=True),
        Flag("statistics", free, "statistics", argument=True, many=True, common=True),
        *(
            Flag(name, words, "statistics", many=True, common=True, placeholder=one)
            for name, words, one in kinds
        ),
        Flag("level", "Confidence level in percent.", "run", float, default=95.0, common=True),
        Flag(
            "about",
            "What the intervals are about.",
            "run",
            default="population",
            common=True,
            placeholder="population|records",
        ),
        Flag("deff", "Design effect of the sample.", "run", float, default=1.0, common=True),
        Flag(
            "rake",
            "Rake weights to the margins of the released schema.",
            "run",
            bool,
            default=False,
            common=True,
        ),
        Flag("replicates", number, "output", int, common=True, placeholder="COUNT"),
        Flag("columns", used, "output", common=True, placeholder="A,B,C"),
        Flag(
            "out",
            "With --replicates: the new file to write.",
            "output",
            Path,
            common=True,
            placeholder="FILE",
        ),
        options.JSON,
    )


def intervals(typed: Mapping[str, Any]) -> None:
    """Confidence intervals for a population, from a published release alone; uses no privacy budget.

    The rows of a synthetic release are not a sample: intervals computed from them as if they were contain the truth in
    about 60 of 100 cases where 95 are meant. This command uses the noisy numbers behind the rows as well.

    Examples:

      shoal intervals release --mean 'income by sex' --share 'income > 50000'

      shoal intervals release 'hours ~ age + C(sex)' --level 90

      shoal intervals release --replicates 80 --columns age,sex,hours --out weights.csv
    """
    wanted = _asked(typed)
    replicates, out = typed["replicates"], typed["out"]
    if (replicates is None) != (out is None):
        raise OptionError("replicates-and-out", option="replicates" if out is None else "out")
    if not wanted and replicates is None:
        raise OptionError("no-statistics-asked")
    if replicates is not None and out is not None:
        from shoal.inference import write_replicate_weights
        from shoal.mechanisms import names_in

        names = None if typed["columns"] is None else names_in(typed["columns"])
        rows = write_replicate_weights(
            typed["bundle"], out, columns=names, count=replicates, rake=typed["rake"]
        )
        messages().print(
            f"Written to {out}: {rows} rows with weights w and w1 to w{replicates}.", markup=False
        )
    if wanted:
        from shoal.inference import intervals as found_intervals

        about = {"level": typed["level"] / 100, "about": typed["about"], "deff": typed["deff"]}
        found = found_intervals(typed["bundle"], wanted, **about, rake=typed["rake"])
        if typed["json"]:
            print_json(found.to_dict())
        else:
            _print(list(found), typed["level"])


def _asked(typed: Mapping[str, Any]) -> list[str]:
    """All statistics as text."""
    return [
        *(typed["statistics"] or []),
        *(_with_groups("mean", one) for one in typed["mean"] or []),
        *(_with_groups("share", one) for one in typed["share"] or []),
        *(text for one in typed["quantile"] or [] for text in _quantiles(one)),
        *(f"table({one})" for one in typed["table"] or []),
        *(f"corr({one})" for one in typed["corr"] or []),
        *(typed["formula"] or []),
        *(f"logit({one})" for one in typed["logit"] or []),
    ]


def _with_groups(form: str, text: str) -> str:
    what, by, group = text.partition(" by ")
    return f"{form}({what.strip()}){by}{group}"


def _quantiles(text: str) -> list[str]:
    levels, colon, column = text.partition(":")
    if not colon:
        raise OptionError("quantile-option", option="quantile", found=text)
    return [f"quantile({column.strip()}, {level.strip()})" for level in levels.split(",")]


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"


def _print(found: Sequence[Interval], level: float) -> None:
    """One line for each number, and below them what the marks mean."""
    printed = results()
    head = ("estimate", "low", "high", "file's own")
    wide = max(len("statistic"), min(max(len(one.name) for one in found), _NAME))
    printed.print(
        f"{'statistic':<{wide}} "
        + " ".join(f"{name:>{_NUMBER}}" for name in head)
        + "  sampled noise unmeasured",
        markup=False,
        highlight=False,
    )
    notes: dict[str, str] = {}
    for one in found:
        for flag in one.flags:
            notes.setdefault(flag, chr(ord("a") + len(notes)))
        marks = "".join(notes[flag] for flag in one.flags)
        numbers = " ".join(
            f"{_number(value):>{_NUMBER}}" for value in (one.estimate, one.low, one.high, one.release)
        )
        parts = f"{100 * one.sampling:6.0f}% {100 * one.noise:4.0f}% {100 * one.unmeasured:9.0f}%"
        name = one.name if len(one.name) <= wide else one.name[: wide - 1] + "…"
        printed.print(f"{name:<{wide}} {numbers} {parts}  {marks}".rstrip(), markup=False, highlight=False)
    for meaning in dict.fromkeys(one.meaning for one in found if one.meaning):
        printed.print(meaning, markup=False, highlight=False)
    for flag, mark in notes.items():
        one = next(one for one in found if flag in one.flags)
        printed.print(f"{mark}: {one.words_of(flag)}", markup=False, highlight=False)
