"""Errors as data: code, column, row, option and solution beside the sentence, all problems at once, no flags."""

from __future__ import annotations

import ast
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.cli.command import flag
from shoal.errors import MissingExtraError, Problems, ShoalError, plain_facts
from shoal.ledger.account import KeyReusedError, OverdrawnError, QuotaError, UnpricedError
from shoal.text import Message, catalogue, render

PACKAGE = Path(shoal.__file__).parent
DOMAINS = {"age": (0, 120), "pay": (0, 5000)}
INFINITE = shoal.InputError("infinite", column="a", row=3)
STAYS = "stopped. The privacy budget charged to data set 'a' (ε = 1) stays charged."


def table(**changes: Any) -> pd.DataFrame:
    columns = {"age": np.arange(20, 50), "pay": np.arange(30) * 100.0}
    return pd.DataFrame({**columns, **changes})


def refusal(data: pd.DataFrame | None = None, **options: Any) -> ShoalError:
    usual = {"method": "ranking-dp", "epsilon": 1, "k": 3, "domains": DOMAINS}
    with pytest.raises(ShoalError) as refused:
        shoal.protect(table() if data is None else data, **{**usual, **options})
    return refused.value


GAPS = np.where(np.arange(30) == 4, np.nan, 7.0)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no domain": (
        {"domains": {"age": (0, 120)}},
        {"code": "no-domain", "column": "pay", "option": "domains", "row": None},
    ),
    "outside": (
        {"domains": {**DOMAINS, "age": (0, 30)}},
        {"code": "outside-domain", "column": "age", "row": None, "option": "outside"},
    ),
    "missing": (
        {"data": table(pay=GAPS)},
        {"code": "missing-values", "column": "pay", "row": 5, "option": "missing"},
    ),
    "infinite": (
        {"data": table(pay=np.where(np.arange(30) == 4, np.inf, 7.0))},
        {"code": "infinite", "column": "pay", "row": 5, "fix": "correct or remove it."},
    ),
    "k above n": ({"k": 31}, {"code": "k-too-large", "option": "k", "fix": "choose k between 1 and 30."}),
    "unknown option": ({"kk": 3}, {"code": "there-no-option", "option": "kk"}),
    "unknown choice": (
        {"remainder": "midle"},
        {"code": "unknown-option", "option": "remainder", "fix": "Did you mean 'middle'?"},
    ),
    "no epsilon": (
        {"epsilon": None},
        {"code": "epsilon-is-missing", "option": "epsilon", "fix": "give the privacy budget, for example 1."},
    ),
    "unknown column": (
        {"columns": ["agee"]},
        {"code": "unknown-column", "column": "agee", "fix": "Did you mean 'age'?"},
    ),
    "outside is a word": ({"outside": "ignore"}, {"code": "unknown-option", "option": "outside"}),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_has_its_facts_beside_its_sentence(name: str) -> None:
    given, expected = CASES[name]
    error = refusal(**given)
    assert {key: getattr(error, key) for key in expected} == expected
    assert error.problems == (error,)
    assert error.to_dict() == {
        "sentence": str(error),
        **{key: getattr(error, key) for key in ("code", "column", "row", "option", "fix")},
        "facts": plain_facts(error.facts),
    }
    assert str(error) == render(error.code, error.facts)


def test_five_missing_domains_are_one_error() -> None:
    error = refusal(pd.DataFrame({f"c{number}": np.arange(30) for number in range(5)}), domains=None)
    assert isinstance(error, shoal.ProblemsError)
    assert [problem.column for problem in error.problems] == ["c0", "c1", "c2", "c3", "c4"]
    assert {problem.code for problem in error.problems} == {"no-domain"}
    assert str(error).count("\n") == 4
    assert (error.code, error.column, error.option, error.fix) == ("problems", None, None, "")


def test_what_a_sentence_is_about_is_no_option() -> None:
    assert shoal.InputError("infinite", column="k", row=3).option is None
    found = shoal.OptionError(
        "unknown-option", option="split", found="fair", allowed=("equal", "optimal"), hint=None
    )
    assert (found.option, str(found)) == ("split", "split 'fair' is not one of equal, optimal.")


def test_all_kinds_of_problems_come_together() -> None:
    """Whatever needs no run: settings, domains, gaps, values outside, k."""
    data = table(gap=GAPS, bare=1, far=np.arange(30))
    error = refusal(data, k=31, domains={**DOMAINS, "gap": (0, 9), "far": (0, 20)})
    assert [(problem.code, problem.column) for problem in error.problems] == [
        ("missing-values", "gap"),
        ("no-domain", "bare"),
        ("outside-domain", "far"),
        ("k-too-large", None),
    ]
    error = refusal(data, epsilon=None, domains={**DOMAINS, "gap": (0, 9), "far": (0, 20)})
    assert (error.problems[0].code, error.problems[0].option) == ("epsilon-is-missing", "epsilon")
    assert len(error.problems) == 4


def test_every_column_that_does_not_fit_is_named() -> None:
    error = refusal(table(pay=["a"] * 30, age=["b"] * 30), columns=["age", "pay"], domains=DOMAINS)
    assert [(problem.code, problem.column, problem.row) for problem in error.problems] == [
        ("not-a-number", "age", 1),
        ("not-a-number", "pay", 1),
    ]


def test_one_problem_is_raised_as_itself() -> None:
    assert type(refusal(k=31)) is shoal.OptionError
    assert type(refusal(table(pay=GAPS))) is shoal.InputError


def test_several_problems_are_caught_like_any_of_them() -> None:
    error = refusal(domains=None)
    assert isinstance(error, shoal.InputError)
    assert isinstance(error, shoal.OptionError)
    assert isinstance(error, ValueError)


def test_problems_are_collected_but_not_a_cancellation() -> None:
    problems = Problems()
    with problems.collected():
        raise shoal.InputError("infinite", column="a", row=1)
    assert problems
    with pytest.raises(shoal.CancelledError), problems.collected():
        raise shoal.CancelledError
    with pytest.raises(shoal.InputError, match="column 'a' has an infinite value"):
        problems.raise_all()
    Problems().raise_all()


@pytest.mark.parametrize(
    "error",
    [
        INFINITE,
        shoal.OptionError("k-too-large", option="k", k=9, n=8),
        shoal.OutputError("bundle-cannot-write", folder=Path("x"), reason="no room"),
        shoal.OptionError(
            "of-column", column="a", reason=shoal.OptionError("domain-needs-lo-hi", lo=2, hi=1)
        ),
        shoal.CancelledError(),
        MissingExtraError("missing-extra", who="this needs", extra="learn", command="install it"),
        shoal.ProblemsError([INFINITE, shoal.OptionError("k-too-large", option="k", k=9, n=8)]),
    ],
)
def test_errors_go_to_other_processes(error: ShoalError) -> None:
    """Workers send what they could not do: sentence and facts arrive."""
    again = pickle.loads(pickle.dumps(error))
    assert again.rendered(flag) == error.rendered(flag)
    assert type(again) is type(error)
    assert again.to_dict() == error.to_dict()
    assert [problem.to_dict() for problem in again.problems] == [p.to_dict() for p in error.problems]


def _classes(base: type[ShoalError]) -> list[type[ShoalError]]:
    return [base, *(found for kind in base.__subclasses__() for found in _classes(kind))]


def test_every_error_carries_the_facts() -> None:
    """Also those with arguments of their own."""
    from fractions import Fraction

    own = [
        OverdrawnError("the data set", "epsilon", Fraction(2), Fraction(1)),
        QuotaError(3),
        KeyReusedError(),
    ]
    for error in (*own, UnpricedError()):
        assert set(error.to_dict()) == {"sentence", "code", "column", "row", "option", "fix", "facts"}
        assert error.code
    from shoal.query.client import RefusedError

    assert RefusedError(402, {"error": "overdrawn", "message": "No."}).code == "overdrawn"
    # one word for each kind of error, and none for two
    kinds = [kind.kind for kind in set(_classes(ShoalError)) if "kind" in vars(kind)]
    assert len(kinds) == len(set(kinds)) > 8


def _messages(path: Path) -> list[tuple[int, str]]:
    """All texts of a module but its docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
    ]


# a variable of a stylesheet, var(--ink), is no flag
FLAG = re.compile(r"(^|[\s\'\"]|(?<!var)\()--[a-z]")
# the first line of a recipe, and of a log, says how to use the file
ALLOWED = {
    ("mechanisms/registry.py", "# The recipe of a release."),
    ("mechanisms/registry.py", "# What was done, in order,"),
    # the command to copy from the studio
    ("studio/preview.py", " --config method.toml --dataset "),
    ("studio/preview.py", " --out release"),
    # where flags are made
    ("text/sentences.py", "--no-"),
}


def test_no_message_of_the_library_speaks_of_flags() -> None:
    found = [
        (name, line, text)
        for path in sorted(PACKAGE.rglob("*.py"))
        if not (name := path.relative_to(PACKAGE).as_posix()).startswith("cli/")
        # reading the code of all of them takes seconds
        and "--" in path.read_text("utf-8")
        for line, text in _messages(path)
        if FLAG.search(text) and not any(name == file and text.startswith(start) for file, start in ALLOWED)
    ]
    assert found == []
    rooms = [room for room in (PACKAGE / "text" / "en").glob("*.json") if room.stem != "cli"]
    assert [room.name for room in rooms if FLAG.search(room.read_text("utf-8"))] == []


def test_the_check_sees_a_flag(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        '"""Not this --flag."""\nraise ValueError(f"give {1} with --columns.")\n'
    )
    assert [line for line, text in _messages(tmp_path / "module.py") if FLAG.search(text)] == [2]


@pytest.mark.parametrize(
    ("template", "facts", "sentence", "printed"),
    [
        (
            "column '{column}' has a gap: choose «missing=drop».",
            {"column": "missing=3"},
            "column 'missing=3' has a gap: choose missing=drop.",
            "column 'missing=3' has a gap: choose --missing drop.",
        ),
        ('clip with «outside="clip"».', {}, 'clip with outside="clip".', "clip with --outside clip."),
        (
            "leave «fast=» out, or give «link=False» or «link=True».",
            {},
            "leave fast= out, or give link=False or link=True.",
            "leave --fast out, or give --no-link or --link.",
        ),
        ("say {signs}.", {"signs": '«decimal=","»'}, 'say «decimal=","».', 'say «decimal=","».'),
        ('use «decimal=","».', {}, 'use decimal=",".', "use --decimal ','."),
        ("«{option}» must be a number.", {"option": "k"}, "k must be a number.", "--k must be a number."),
        ("too large.", {"option": "k"}, "too large.", "too large. (--k)"),
        ("give «types=text».", {"column": "pay"}, "give types=text.", "give --type 'pay=text'."),
        ("give «domains=».", {"column": "pay"}, "give domains=.", "give --domain 'pay=lo:hi'."),
        ("give «work=».", {}, "give work=.", "give work=."),
        ("stopped.", {"added": Message("charge-stays", {"dataset": "a", "cost": "ε = 1"})}, *[STAYS] * 2),
    ],
)
def test_the_command_line_puts_its_flags_in(
    template: str, facts: dict[str, Any], sentence: str, printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {**catalogue(), "made-up": (template,)}
    # the module has a function of its own name
    monkeypatch.setattr(sys.modules["shoal.text.sentences"], "catalogue", lambda: known)
    message = Message("made-up", facts)
    assert (message.rendered(), message.rendered(flag)) == (sentence, printed)


def test_an_error_about_an_option_names_its_flag_once() -> None:
    missing = "--epsilon is missing: give the privacy budget, for example 1."
    assert refusal(epsilon=None).rendered(flag) == missing
    assert refusal(k=31).rendered(flag).endswith("choose k between 1 and 30. (--k)")
    assert refusal(domains={"age": (0, 120)}).rendered(flag).count("--domain 'pay=lo:hi'") == 1
    assert refusal(table(pay=GAPS)).rendered(flag).count("--missing") == 1


def test_every_flag_that_is_named_exists() -> None:
    """All names that are translated are options of some command."""
    from shoal.cli import app
    from shoal.mechanisms.parameter_fields import DECLARATIONS
    from shoal.mechanisms.registry import parameters

    commands = [command.cls for command in app.registered_commands if hasattr(command.cls, "flags")]
    known = {spelled for command in commands for one in command.flags() for spelled in one.spellings}
    # what a private choice cost and bought stands in recipes
    declared = {*DECLARATIONS} - {"tuned_epsilon", "tuned_choice"}
    asked = {*parameters(), *declared, "date_format", "types", "ledger", "max_risk", "same_records", "seed"}
    assert {flag(name) for name in asked} <= known
