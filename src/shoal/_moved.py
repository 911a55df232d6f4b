"""Documented modules that have moved: their old paths work for one more minor version, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "shoal.columns.bands": "shoal.columns.steps",
    "shoal.columns.lattice": "shoal.columns.kinds",
    "shoal.evaluation.attacks.risk": "shoal.evaluation.attacks.singling",
    "shoal.evaluation.disclosure.diversity": "shoal.evaluation.disclosure.record_risk",
    "shoal.evaluation.disclosure.figures": "shoal.evaluation.disclosure.result",
    "shoal.evaluation.disclosure.loglinear": "shoal.evaluation.disclosure.record_risk",
    "shoal.evaluation.population": "shoal.evaluation.survey",
    "shoal.evaluation.risk_lines": "shoal.evaluation.assessment",
    "shoal.io.conventions": "shoal.io.text_files",
    "shoal.mechanisms.promises": "shoal.mechanisms.registry",
    "shoal.noise.box_shape": "shoal.noise.box",
    "shoal.noise.categorical": "shoal.noise.choice",
    "shoal.query.composition": "shoal.query.price",
    "shoal.report.sections": "shoal.report.pages",
    "shoal.tuning.choose": "shoal.tuning.grid",
}
# names that are others where the module is now
RENAMED = {
    ("shoal.evaluation.attacks.risk", "Risk"): "AttackRisk",
}


class _Moved(MetaPathFinder, Loader):
    """Finds a moved module after everything else has failed; what it holds is what the new module holds."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = MOVED[old]
        warnings.warn(
            f"{old} has moved to {new}; the old path goes with the next minor version",
            DeprecationWarning,
            stacklevel=2,
        )
        there = import_module(new)

        def found(name: str) -> Any:
            return getattr(there, RENAMED.get((old, name), name))

        module.__dict__["__getattr__"] = found


def keep_old_paths() -> None:
    """Let old paths be imported; `import shoal` calls it once."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
