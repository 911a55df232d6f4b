"""Moved modules: documented old import paths keep working for one more minor version, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# old module: the package that exports what it documented
MOVED = {
    "shoal.columns.circumstances": "shoal.columns",
    "shoal.columns.bands": "shoal.columns",
    "shoal.columns.lattice": "shoal.columns",
    "shoal.evaluation.attacks.risk": "shoal.evaluation",
    "shoal.evaluation.disclosure.diversity": "shoal.evaluation",
    "shoal.evaluation.disclosure.figures": "shoal.evaluation",
    "shoal.evaluation.disclosure.keys": "shoal.partition",
    "shoal.evaluation.disclosure.loglinear": "shoal.evaluation",
    "shoal.evaluation.population": "shoal.evaluation",
    "shoal.evaluation.risk_lines": "shoal.evaluation",
    "shoal.evaluation.verdict": "shoal.evaluation",
    "shoal.io.conventions": "shoal.io",
    "shoal.mechanisms.promises": "shoal.mechanisms",
    "shoal.method.budget": "shoal.privacy",
    "shoal.method.claims": "shoal.privacy",
    "shoal.method.forms": "shoal.mechanisms.parameter_fields",
    "shoal.method.method": "shoal.mechanisms",
    "shoal.method.parameters": "shoal.mechanisms",
    "shoal.method.registry": "shoal.mechanisms",
    "shoal.method.stages": "shoal.mechanisms",
    "shoal.method.tuned": "shoal.mechanisms",
    "shoal.method.verdict": "shoal.privacy",
    "shoal.noise.box_shape": "shoal.noise",
    "shoal.noise.categorical": "shoal.noise",
    "shoal.query.composition": "shoal.query",
    "shoal.release.protect": "shoal.release",
    "shoal.report.sections": "shoal.report",
    "shoal.text.render": "shoal.text",
    "shoal.tuning.choose": "shoal.tuning",
}
# packages that no longer exist: only parents of moved modules
GONE = {"shoal.method"}
# documented names that have been renamed
RENAMED = {
    ("shoal.evaluation.attacks.risk", "Risk"): "AttackRisk",
    ("shoal.method.claims", "Promise"): "AppliedClaim",
}


def renamed(module: str, **names: str) -> Callable[[str], Any]:
    """`__getattr__` for a module with renamed exports: old name = new name."""

    def found(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name]
        warnings.warn(
            f"{module}.{name} is {new} now; the old name goes with the next minor version",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(sys.modules[module], new)

    return found


class _Moved(MetaPathFinder, Loader):
    """Find a moved module once every other finder has failed, and give it the contents of the new module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in MOVED and fullname not in GONE:
            return None
        return ModuleSpec(fullname, self, is_package=fullname in GONE)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        if old in GONE:
            return
        new = MOVED[old]
        warnings.warn(
            f"{old} has moved to {new}; the old path goes with the next minor version",
            DeprecationWarning,
            stacklevel=2,
        )
        there = import_module(new)

        def found(name: str) -> Any:
            # the package may export a function named like the module; importing the module has shadowed it
            parent, _, child = old.rpartition(".")
            if (room := sys.modules.get(parent)) is not None and vars(room).get(child) is module:
                delattr(room, child)
            return getattr(there, RENAMED.get((old, name), name))

        module.__dict__["__getattr__"] = found


def keep_old_paths() -> None:
    """Make old import paths work; called once, by `import shoal`."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
