"""How long a run will take, as a process of its own finds out on made-up rows.

A page asks once it rests. Who moves a setting meanwhile ends the trial; nothing is spent, and no record is looked at.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from shoal.studio import runs
from shoal.studio.recipe import Recipe
from shoal.studio.runs import Run

_KEPT = 20


class Expecting:
    """What is known about the time that runs take, by their settings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Any, str] = {}
        self._trial: Run | None = None

    def words(self, recipe: Recipe, rows: int) -> str | None:
        """How long a run would take; None as long as nobody asked, empty where it cannot be told."""
        return self._known.get(_key(recipe, rows))

    def ask(self, recipe: Recipe, rows: int, job: Mapping[str, Any], told: Callable[[Run], None]) -> None:
        """Begin to find out, unless it is known or on its way; what another trial was about is not wanted any more."""
        key = _key(recipe, rows)
        if key in self._known:
            return
        if self._trial is not None and self._trial.state == "running":
            if _key(self._trial.recipe, rows) == key:
                return
            self.stop()
        run = Run("", "expect", recipe, self._folder / f"expected-{secrets.token_hex(4)}")

        def heard(trial: Run) -> None:
            if trial.state in ("done", "failed"):
                while len(self._known) >= _KEPT:
                    del self._known[next(iter(self._known))]
                self._known[key] = trial.expected
                trial.remove()
                told(trial)

        self._trial = run
        runs.start(run, job, heard)

    def stop(self) -> None:
        """The trial is not wanted any more, or its place in the machine is."""
        if self._trial is not None:
            self._trial.cancel()
            self._trial.remove()
            self._trial = None


def _key(recipe: Recipe, rows: int) -> tuple[Any, ...]:
    return recipe.method, tuple(sorted(recipe.settings.items())), recipe.schema, recipe.left_out, rows
