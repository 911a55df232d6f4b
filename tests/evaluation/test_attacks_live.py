"""Our attacks and those of anonymeter itself, on the same tables, split and number of attacks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from shoal.io import write
from shoal.survey import survey

from .test_attacks_recorded import ATTACKS, MIXED, NUMBERS, RECORDED, RELEASES, agree, credits

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / os.environ.get("SHOAL_ANONYMETER", ".venv-anonymeter") / "bin" / "python"


@pytest.mark.slow
def test_rates_agree_with_anonymeter(tmp_path: Path) -> None:
    assert PYTHON.exists(), "make test-all installs anonymeter into an environment of its own: run that"
    people = survey(4000, seed=2017)
    original = people.slice(0, 2000)
    write(original.select(MIXED), tmp_path / "original.csv")
    write(people.slice(2000).select(MIXED), tmp_path / "control.csv")
    for release, make in RELEASES.items():
        write(make(original), tmp_path / f"{release}.csv")
    asked = {"cases": list(RECORDED), "numbers": NUMBERS, "attacks": ATTACKS}
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    script = Path(__file__).with_name("anonymeter_rates.py")
    run = subprocess.run([PYTHON, script, tmp_path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    counts = json.loads(run.stdout.splitlines()[-1])
    differing = {}
    for case, theirs in zip(RECORDED, counts, strict=True):
        ours = [float(found.mean()) for found in credits(*case)]
        if not all(agree(rate, count, confidence=0.99) for rate, count in zip(ours, theirs, strict=True)):
            differing[case] = (ours, [count / ATTACKS for count in theirs])
    assert not differing
