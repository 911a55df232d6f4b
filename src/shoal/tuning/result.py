"""The result of `tune`: a table, JSON, a plot and the reasons for the recommendation."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import display
from shoal.display import displayed
from shoal.errors import OutputError
from shoal.evaluation import needs_rows, plain, ranked_by
from shoal.io import private_folder, private_text
from shoal.mechanisms import Tuned, method_class
from shoal.numbers import decimal_text
from shoal.privacy import MODELS
from shoal.text import Message
from shoal.tuning.grid import Row, chance

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.table import Table

    from shoal.privacy import PublicVerdict
    from shoal.tuning.grid import Setting


_WIDTH, _HEIGHT = 720, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 520, 56, 450
_COLOURS = ("#1f7a8c", "#c0392b", "#7d5ba6", "#2e8b57", "#d98324", "#4a4e69", "#b5179e", "#6c757d")
FILES = ("tuning.json", "tuning.svg", "method.toml")
# strongest claim first; each is weaker than those before it
_STRENGTH = ("dp", "approximate-dp", "dp-given-partition", "idp-given-partition")
# percentage of linked rows, far above guessing, that deserves a warning
_NOTABLE = 5.0
# how many other methods are named
_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic axis from one position on the page to another."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        clipped = min(max(value, self.low), self.high)
        part = math.log(clipped / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """A few round numbers inside the axis."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [digit * 10.0**power for power in powers for digit in digits]
            found = [value for value in found if self.low <= value <= self.high]
            if len(found) <= 8:
                break
        return found


def plot_svg(rows: Sequence[Row], utility: str, best: Row | None, title: str) -> str:
    """Loss over linkage risk on logarithmic axes, one point per setting, with the frontier drawn through.

    Settings without a risk are drawn over their size k.
    """
    drawn = [row for row in rows if row.apart is None and row.loss is not None]
    by_risk = all(row.risk is not None for row in drawn)

    def across(row: Row) -> float:
        if by_risk and row.risk is not None:
            return row.risk.mean
        return float(row.setting.k or 1)

    x = _axis([across(row) for row in drawn], _LEFT, _RIGHT)
    y = _axis([row.loss.mean for row in drawn if row.loss], _BOTTOM, _TOP)
    methods = list(dict.fromkeys(row.setting.method for row in drawn))
    # points on the frontier are drawn last, so that others do not cover them
    in_front_last = sorted(drawn, key=lambda row: (row.frontier, row is best))
    colours = {method: _COLOURS[place % len(_COLOURS)] for place, method in enumerate(methods)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="28" font-size="16">{escape(title)}</text>',
        *_grid(x, y),
        _label_below("rows linked to their own record, %" if by_risk else "k"),
        f'<text transform="translate(18 {(_TOP + _BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(ranked_by()[utility])}</text>",
        *_frontier_line(drawn, across, x, y),
        *(_point(row, across(row), x, y, colours[row.setting.method], row is best) for row in in_front_last),
        *_legend(colours, best),
        f'<text x="{_LEFT}" y="{_HEIGHT - 12}" font-size="11" fill="#555">Facts about the original data: not for '
        "publication. Claims differ between methods.</text>",
    ]
    return "\n".join([*parts, "</svg>", ""])


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive) / 1.3, max(positive) * 1.3
    return _Axis(low, high, start, end)


def _grid(x: _Axis, y: _Axis) -> list[str]:
    parts = [
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" stroke="#888" fill="none"/>',
    ]
    for value in x.ticks():
        place = x.place(value)
        parts.append(f'<path d="M{place:.1f} {_TOP}V{_BOTTOM}" stroke="#eee"/>')
        parts.append(f'<text x="{place:.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{value:g}</text>')
    for value in y.ticks():
        place = y.place(value)
        parts.append(f'<path d="M{_LEFT} {place:.1f}H{_RIGHT}" stroke="#eee"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{place + 4:.1f}" text-anchor="end">{value:g}</text>')
    return parts


def _label_below(text: str) -> str:
    return f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 38}" text-anchor="middle">{escape(text)}</text>'


def _frontier_line(drawn: Sequence[Row], across: Callable[[Row], float], x: _Axis, y: _Axis) -> list[str]:
    """A step line through the rows that no other row beats in both means."""
    steps: list[tuple[float, float]] = []
    for row in sorted(drawn, key=lambda row: (across(row), row.loss.mean if row.loss else 0.0)):
        if row.frontier and row.loss and (not steps or row.loss.mean < steps[-1][1]):
            steps.append((across(row), row.loss.mean))
    if len(steps) < 2:
        return []
    places = [(x.place(risk), y.place(loss)) for risk, loss in steps]
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    path += "".join(f"H{across:.1f}V{up:.1f}" for across, up in places[1:])
    return [f'<path d="{path}" stroke="#222" stroke-dasharray="5 4" fill="none"/>']


def _point(row: Row, value: float, x: _Axis, y: _Axis, colour: str, best: bool) -> str:
    assert row.loss is not None
    across, up = x.place(value), y.place(row.loss.mean)
    words = f"{row.setting} ({row.model}): loss {row.loss}" + (f", linked {row.risk}%" if row.risk else "")
    whiskers = f"M{across:.1f} {y.place(row.loss.at_least):.1f}V{y.place(row.loss.at_most):.1f}"
    if row.risk is not None:
        whiskers += f"M{x.place(row.risk.at_least):.1f} {up:.1f}H{x.place(row.risk.at_most):.1f}"
    ring = f'<circle cx="{across:.1f}" cy="{up:.1f}" r="10" fill="none" stroke="#222" stroke-width="2"/>'
    return (
        f'<path d="{whiskers}" stroke="{colour}" stroke-opacity="0.35"/>'
        f'<circle cx="{across:.1f}" cy="{up:.1f}" r="5" fill="{colour if row.frontier else "white"}" '
        f'stroke="{colour}" stroke-width="1.5"><title>{escape(words)}</title></circle>{ring if best else ""}'
    )


def _legend(colours: dict[str, str], best: Row | None) -> list[str]:
    parts = []
    for place, (method, colour) in enumerate(colours.items()):
        up = _TOP + 12 + 20 * place
        parts.append(f'<circle cx="{_RIGHT + 22}" cy="{up - 4}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{_RIGHT + 34}" y="{up}">{escape(method)}</text>')
    up = _TOP + 24 + 20 * len(colours)
    lines = ["filled: on the frontier", "dashes: the frontier"] + (["ring: recommended"] if best else [])
    return parts + [
        f'<text x="{_RIGHT + 16}" y="{up + 18 * place}" font-size="11" fill="#555">{line}</text>'
        for place, line in enumerate(lines)
    ]


@displayed(display.of_tuning)
@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """Settings compared on a table, and the recommended one. Facts about the original data, unless chosen privately.

    Attributes:
        epsilon: the budget of every setting.
        utility: the measure of loss that settings are ranked by; None for a private choice.
        rows: every setting that ran, in order of increasing loss, those that could not be compared at the end.
        refused: settings that the data or the claim do not allow, with the reason.
        best: the recommended setting, None if none is within the limit.
        reasons: which settings it beats and by how much, its risk and its claim; `why` has them as one text.
        tuned: what was chosen, and the budget used for it.
        seeds: number of runs of each setting; 0 for closed forms only.
        columns: the released columns.
        n: number of records.
        recipe: `method.toml` of the recommended setting, marked as chosen on the records.
        verdict: on a release of the same records with the recommended setting.
    """

    epsilon: Fraction | None
    utility: str | None
    rows: tuple[Row, ...]
    refused: Mapping[Setting, Message]
    best: Setting | None
    reasons: tuple[Message, ...]
    tuned: Tuned | None
    seeds: int
    columns: tuple[str, ...]
    n: int
    recipe: str | None = field(default=None, repr=False)
    verdict: PublicVerdict | None = None

    @property
    def why(self) -> str:
        """Why the setting is recommended."""
        return " ".join(map(str, self.reasons))

    @property
    def private(self) -> bool:
        """Whether the choice was made under a budget and may be published."""
        return self.tuned is not None and self.tuned.epsilon is not None

    @property
    def frontier(self) -> tuple[Row, ...]:
        """The settings that no other setting beats in both loss and risk, in order of increasing loss."""
        return tuple(row for row in self.rows if row.frontier)

    @property
    def best_row(self) -> Row | None:
        """The recommended setting with its figures; None if there is none or the choice was private."""
        return next((row for row in self.rows if row.setting == self.best), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        out: dict[str, Any] = plain(
            {
                "epsilon": None if self.epsilon is None else float(self.epsilon),
                "rows": self.n,
                "columns": self.columns,
                "seeds": self.seeds,
                "utility": self.utility,
                "best": None if self.best is None else self.best.to_dict(),
                "why": self.why,
                "verdict": None if self.verdict is None else self.verdict.decision,
                "tuned": None if self.tuned is None else self.tuned.what,
                "tuned_epsilon": float(self.tuned.epsilon) if self.tuned and self.tuned.epsilon else None,
                "tuned_choice": [] if self.tuned is None else [one.to_dict() for one in self.tuned.choice],
                "settings": [row.to_dict() for row in self.rows],
                "refused": [
                    {**setting.to_dict(), "reason": str(reason)} for setting, reason in self.refused.items()
                ],
            }
        )
        return out

    def plot(self) -> str:
        """Loss over risk as SVG."""
        budget = "" if self.epsilon is None else f", ε = {decimal_text(self.epsilon)}"
        return plot_svg(self.rows, self.utility or "", self.best_row, f"Loss and risk{budget}")

    def save(self, folder: str | Path) -> Path:
        """Write `tuning.json`, `tuning.svg` and `method.toml` to a folder; a private choice has no plot.

        Raises:
            OutputError: the folder cannot be written.
        """
        folder = Path(folder)
        texts = {"tuning.json": json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"}
        if any(row.apart is None for row in self.rows):
            texts["tuning.svg"] = self.plot()
        if self.recipe is not None:
            texts["method.toml"] = self.recipe
        try:
            private_folder(folder)
            for name in FILES:
                if name in texts:
                    aside = folder / f".{name}.partial"
                    private_text(aside, texts[name])
                    os.replace(aside, folder / name)
        except OSError as error:
            raise OutputError(
                "tuning-folder-not-writable", folder=folder, reason=error.strerror or error
            ) from None
        return folder

    def table(self, *, everything: bool = False) -> Table:
        """The frontier and the best setting of each method, or every setting, for a terminal."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        best_of: dict[str, Row] = {}
        for row in self.rows:
            best_of.setdefault(row.setting.method, row)
        shown = [
            row
            for row in self.rows
            if everything or row.frontier or best_of[row.setting.method] is row or row.setting == self.best
        ]
        what = "every setting" if everything else "the frontier (*) and the best of each method"
        out = Table(
            title=f"Tuning: {what} (internal: facts about the original data)",
            title_justify="left",
            caption_justify="left",
            box=SIMPLE_HEAD,
            pad_edge=False,
        )
        # a narrow terminal breaks lines between words: no column and no digit may get lost
        out.add_column("", no_wrap=True, min_width=2)
        out.add_column("setting", overflow="fold")
        out.add_column("claim", no_wrap=True)
        out.add_column("loss", justify="right", overflow="fold")
        out.add_column("linked %", justify="right", overflow="fold")
        for row in shown:
            mark = ">" if row.setting == self.best else " "
            mark += "*" if row.frontier else " "
            out.add_row(
                mark,
                str(row.setting),
                row.model,
                "-" if row.loss is None else str(row.loss),
                "-" if row.risk is None else str(row.risk),
            )
        # synthetic records correspond to nobody: the records they are compared with change their error
        drawn = needs_rows(self.utility or "") and any(
            method_class(row.setting.method).example().matching for row in shown
        )
        paired = ", xm rows as they are drawn (match=none)" if drawn else ""
        linked = f"linked: rows nearest to their own record, guessing links {100 / self.n:.2g}%."
        runs = (
            f"{linked} Intervals (95%) are over {self.seeds} seeds; without one, a figure is exact."
            if self.seeds > 1
            else f"{linked} One run has no interval; other figures are exact."
        )
        out.caption = (
            f"loss: {ranked_by()[self.utility or '']}{paired}; "
            f"{runs if self.seeds else 'expectations in closed form, nothing was run.'} > is recommended."
        )
        return out

    @property
    def notes(self) -> tuple[str, ...]:
        """Why settings were refused or left out of the comparison, grouped by reason."""
        grouped: dict[tuple[str, Message], list[Setting]] = {}
        for setting, reason in self.refused.items():
            grouped.setdefault((setting.method, reason), []).append(setting)
        for row in self.rows:
            if row.apart is not None:
                grouped.setdefault((row.setting.method, row.apart), []).append(row.setting)
        return tuple(
            str(
                Message.of("note-of-setting", setting=settings[0], reason=reason)
                if len(settings) == 1
                else Message.of("note-of-settings", method=method, settings=len(settings), reason=reason)
            )
            for (method, reason), settings in grouped.items()
        )

    def __rich__(self) -> Table | str:
        return self.why if self.private else self.table()


def reasons(
    rows: Sequence[Row], best: Row | None, utility: str, max_risk: float | None, n: int, tuned: Tuned | None
) -> tuple[Message, ...]:
    """What the choice beats and by how much, its risk and its claim, and what choosing on the records implies."""
    compared = [row for row in rows if row.apart is None]
    if best is None or best.loss is None:
        return (_nothing(compared, max_risk),)
    found = [
        Message.of(
            "least-loss" if max_risk is None else "least-loss-within-risk",
            setting=best.setting,
            compared=len(compared),
            max_risk=max_risk,
            measure=ranked_by()[utility],
            loss=best.loss,
            certainty=Message.of("in-closed-form" if best.loss.exact else "mean-over-seeds"),
        ),
        *_beaten(compared, best),
    ]
    if best.risk is not None and best.risk.exact:
        found.append(Message.of("links-by-guessing", chance=chance(n)))
    elif best.risk is not None:
        found.append(Message.of("links-own-record", risk=best.risk, chance=chance(n)))
        if max_risk is None and best.risk.mean > max(_NOTABLE, 10 * chance(n)):
            from shoal.evaluation import MOST_LINKED

            found.append(Message.of("limit-the-risk", high=100 * MOST_LINKED))
    found += _claims(compared, best)
    facts = MODELS[best.model]
    if tuned is not None and facts.guarantee and not facts.of_the_table:
        found.append(Message.of("choice-looked-at-records", what=tuned.what))
    return tuple(found)


def _nothing(compared: Sequence[Row], max_risk: float | None) -> Message:
    if not compared or max_risk is None:
        return Message.of("no-setting-compared")
    known = [row for row in compared if row.risk is not None]
    least = min(known, key=lambda row: row.risk.mean if row.risk else 0.0)
    return Message.of("no-setting-within-risk", max_risk=max_risk, setting=least.setting, risk=least.risk)


def _beaten(compared: Sequence[Row], best: Row) -> list[Message]:
    """The best settings of the next methods, or the next setting if there is only one method."""
    others: dict[str, Row] = {}
    for row in compared:
        if row.setting != best.setting and row.setting.method != best.setting.method:
            others.setdefault(row.setting.method, row)
    rivals = list(others.values())[:_NAMED] or [row for row in compared if row is not best][:1]
    return [Message.of("beaten", rivals=tuple(_rival(row, best) for row in rivals))] if rivals else []


def _rival(row: Row, best: Row) -> Message:
    assert row.loss is not None
    assert best.loss is not None
    gap = row.loss.mean / best.loss.mean - 1 if best.loss.mean > 0 else 0.0
    if gap < 0:
        return Message.of("rival-above-limit", setting=row.setting, loss=row.loss)
    more = Message.of("share-more", gap=gap) if gap < 2 else Message.of("times-as-much", times=gap + 1)
    clearly = best.loss.at_most < row.loss.at_least
    code = "rival-loses" if clearly else "rival-as-uncertain"
    return Message.of(code, setting=row.setting, loss=row.loss, more=more)


def _claims(compared: Sequence[Row], best: Row) -> list[Message]:
    """Where claims differ: the best setting under each stronger claim."""
    found = [Message.of("its-claim", model=best.model)]
    stronger = _STRENGTH[: _STRENGTH.index(best.model)] if best.model in _STRENGTH else ()
    for model in stronger:
        first = next((row for row in compared if row.model == model), None)
        if first is not None:
            found.append(Message.of("stronger-claim", model=model, setting=first.setting, loss=first.loss))
    return found
