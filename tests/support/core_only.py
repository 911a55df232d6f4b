"""An interpreter with the core only: packages that the core does not require cannot be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_SCRIPT = """
import contextlib, io, json, sys

blocked, commands = json.loads(sys.stdin.read())

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Absent())
for name in [name for name in sys.modules if name.partition(".")[0] in blocked]:
    del sys.modules[name]

from shoal.cli import run

done = []
for words in commands:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = exec(words[1], {}) or 0 if words[0] == "python" else run(words)
    done.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(done))
"""


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


def distributions(requirement: str) -> set[str]:
    """What pip installs for a requirement: the package itself and, with its extras, all that it asks for."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(requirement)]
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        for extra in ("", *sorted(asked.extras)):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                lines = requires(name) or []
            except PackageNotFoundError:
                continue
            found.add(name)
            waiting += [
                needed
                for needed in map(Requirement, lines)
                if needed.marker is None or needed.marker.evaluate({"extra": extra})
            ]
    return found


def modules_beyond(requirement: str) -> set[str]:
    """Modules that are installed here, but would not be if only the requirement were."""
    wanted = distributions(requirement)
    return {
        module
        for module, owners in packages_distributions().items()
        if wanted.isdisjoint(map(canonicalize_name, owners))
    }


def run_with(requirement: str, commands: Sequence[Sequence[str]], folder: Path) -> list[Done]:
    """Run commands one after the other in one interpreter that has only what the requirement brings.

    Args:
        requirement: "shoal", or "shoal[extra]".
        commands: words of the command line; "python" before a text of code.
        folder: where they run.
    """
    given = json.dumps((sorted(modules_beyond(requirement)), commands))
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], input=given, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [Done(*one) for one in json.loads(done.stdout.splitlines()[-1])]
