"""The outcome of a tuning: compared settings come in; a table, JSON, a picture and a recipe leave."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import summaries
from shoal.decimals import decimal_text
from shoal.display import displayed
from shoal.errors import OutputError
from shoal.evaluation.measures import needs_rows, ranked_by
from shoal.evaluation.result import plain
from shoal.io.common import private_folder, private_text
from shoal.method.registry import method_class
from shoal.method.tuned import Tuned
from shoal.text import Message
from shoal.tuning.choose import Row
from shoal.tuning.plot import plot_svg

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.table import Table

    from shoal.method.verdict import PublicVerdict
    from shoal.tuning.grid import Setting

FILES = ("tuning.json", "tuning.svg", "method.toml")


@displayed(summaries.of_tuning)
@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """Settings compared on a table, and the recommended one. Facts about the original data, unless chosen privately.

    Attributes:
        epsilon: the budget of every setting.
        utility: the measure of loss that settings are ranked by; None for a private choice.
        rows: every setting that ran, least loss first, those that could not be compared at the end.
        refused: settings that the data or the claim do not allow, with the reason.
        best: the recommended setting, None if none is within the limit.
        reasons: what it beats, by how much, its risk and its claim; `why` has them as one text.
        tuned: what was chosen, and what was paid for it.
        seeds: number of runs of each setting; 0 for closed forms only.
        columns: the released columns.
        n: number of records.
        recipe: `method.toml` of the recommended setting, with the mark that it was chosen on the records.
        verdict: of a release of the same records with the recommended setting.
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
        """Chosen under a budget, so that the choice may be published."""
        return self.tuned is not None and self.tuned.epsilon is not None

    @property
    def frontier(self) -> tuple[Row, ...]:
        """The settings that no other one beats in both loss and risk, least loss first."""
        return tuple(row for row in self.rows if row.frontier)

    @property
    def best_row(self) -> Row | None:
        """The recommended setting with its figures; None without one, and for a private choice."""
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
        """Write `tuning.json`, `tuning.svg` and `method.toml` to a folder; a private choice has no picture.

        Raises:
            OutputError: the folder cannot be written to.
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
        # drawn rows belong to nobody: what they are compared with changes their error
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
        """Why settings were refused or are listed apart, alike ones together."""
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
