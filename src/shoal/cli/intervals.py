"""`shoal intervals`: confidence intervals from a published bundle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.command import messages, print_json, results
from shoal.errors import OptionError

if TYPE_CHECKING:
    from shoal.inference import Interval

# widths of the columns of the printed table
_NAME, _NUMBER = 44, 11


def intervals(
    bundle: Annotated[Path, typer.Argument(help="Folder that 'shoal protect' wrote.", show_default=False)],
    statistics: Annotated[
        list[str] | None,
        typer.Argument(help="Statistics, such as 'mean(income) by sex' or 'hours ~ age + C(sex)'."),
    ] = None,
    mean: Annotated[list[str] | None, typer.Option(help="Mean, such as income or 'income by sex'.")] = None,
    share: Annotated[list[str] | None, typer.Option(help="Share, such as 'income > 50000'.")] = None,
    quantile: Annotated[list[str] | None, typer.Option(help="Quantiles, such as 0.5,0.9:income.")] = None,
    table: Annotated[list[str] | None, typer.Option(help="Table of two columns, such as sex,region.")] = None,
    corr: Annotated[list[str] | None, typer.Option(help="Correlation, such as age,hours.")] = None,
    formula: Annotated[
        list[str] | None, typer.Option(help="Linear regression, such as 'hours ~ age'.")
    ] = None,
    logit: Annotated[
        list[str] | None, typer.Option(help="Logistic regression, such as 'rich ~ age'.")
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level in percent.")] = 95.0,
    about: Annotated[
        str, typer.Option(help="population or records.", metavar="population|records")
    ] = "population",
    deff: Annotated[float, typer.Option(help="Design effect of the sample.")] = 1.0,
    replicates: Annotated[
        int | None,
        typer.Option(help="Write this many replicate weights for survey software.", show_default=False),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="With --replicates: the columns to use, a,b,c.")] = None,
    out: Annotated[Path | None, typer.Option(help="With --replicates: the new file to write.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Confidence intervals for a population, from a published release alone; uses no privacy budget.

    The rows of a synthetic release are not a sample: intervals computed from them as if they were contain the truth in
    about 60 of 100 cases where 95 are meant. This command uses the noisy numbers behind the rows as well.

    Examples:

      shoal intervals release --mean 'income by sex' --share 'income > 50000'

      shoal intervals release 'hours ~ age + C(sex)' --level 90

      shoal intervals release --replicates 80 --columns age,sex,hours --out weights.csv
    """
    wanted = [
        *(statistics or []),
        *(_with_groups("mean", one) for one in mean or []),
        *(_with_groups("share", one) for one in share or []),
        *(text for one in quantile or [] for text in _quantiles(one)),
        *(f"table({one})" for one in table or []),
        *(f"corr({one})" for one in corr or []),
        *(formula or []),
        *(f"logit({one})" for one in logit or []),
    ]
    if (replicates is None) != (out is None):
        raise OptionError("replicates-and-out", option="replicates" if out is None else "out")
    if not wanted and replicates is None:
        raise OptionError("no-statistics-asked")
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    if replicates is not None and out is not None:
        from shoal.inference import write_replicate_weights

        rows = write_replicate_weights(bundle, out, columns=names, count=replicates)
        messages().print(
            f"Written to {out}: {rows} rows with weights w and w1 to w{replicates}.", markup=False
        )
    if wanted:
        from shoal.inference import intervals as found_intervals

        found = found_intervals(bundle, wanted, level=level / 100, about=_about(about), deff=deff)
        if json:
            print_json(found.to_dict())
        else:
            _print(list(found), level)


def _about(text: str) -> Any:
    return text


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
