"""A parameter is declared once: recipes, commands, lists, pages and messages say the same, because they read it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.cli import options, protect, run, tune
from shoal.cli import tune as audit
from shoal.cli.command import Flag
from shoal.columns.kinds import KINDS
from shoal.errors import OptionError
from shoal.extend import _OPTIONS
from shoal.mechanisms.parameter_fields import DECLARATIONS, SHARED, Parameter
from shoal.mechanisms.registry import configured, load_recipe, method_class, names, parameters
from shoal.noise.families import NOISES
from shoal.release.rehearsal import TableDeclarations
from tools.settings_page import PAGE, with_section

SETTINGS = parameters()
CLASSES = {name: method_class(name) for name in names()}
every_setting = pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
every_own_parameter = pytest.mark.parametrize(
    ("cls", "setting"),
    [
        pytest.param(cls, known, id=f"{name} {option}")
        for name, cls in CLASSES.items()
        for option, known in cls.parameters().items()
    ],
)
FLAGS: dict[str, tuple[Flag, ...]] = {
    "protect": protect.protect_flags(),
    "audit": audit.audit_flags(),
    "tune": tune.tune_flags(),
}


@every_setting
def test_a_parameter_is_one_plain_record(setting: Parameter) -> None:
    assert setting.sentence()[0] != " "
    assert not setting.sentence().endswith(".")
    assert set(setting.kinds) <= set(KINDS)
    assert any(setting.name in cls.parameters() for cls in CLASSES.values())


@every_own_parameter
def test_a_method_has_the_field_with_the_default_that_is_declared(cls: Any, setting: Parameter) -> None:
    made = cls.example()
    assert setting.default is None or setting.read(setting.default) == setting.default
    # a shape is the default one where a noise has one at all
    if setting.default is not None:
        assert getattr(made, setting.name) == setting.default
    # an ε can follow from matrices
    assert setting.required == (setting.name == "epsilon" and "matrix" not in cls.parameters())


@every_own_parameter
def test_what_several_methods_have_is_worded_once(cls: Any, setting: Parameter) -> None:
    first = SETTINGS[setting.name]
    same = replace(setting, default=first.default, after=first.after, required=first.required)
    assert same == first
    assert setting.name not in SHARED or SHARED[setting.name].about == setting.about


@pytest.mark.parametrize("command", FLAGS)
def test_every_command_has_every_setting(command: str) -> None:
    names = {flag.name for flag in FLAGS[command]}
    # what is compared has a list of its own
    compared = (
        {"k": "ks", "split": "splits", "noise": "noises", "delta": "deltas"} if command == "tune" else {}
    )
    for name in SETTINGS:
        assert compared.get(name, name) in names, name
    assert len(FLAGS[command]) == len(names)


@pytest.mark.parametrize("command", FLAGS)
def test_every_command_has_every_declaration(command: str) -> None:
    names = {flag.name for flag in FLAGS[command]}
    of_recipes = {"tuned_epsilon", "tuned_choice"} | (set() if command == "protect" else {*options.VERDICT})
    assert set(DECLARATIONS) - of_recipes <= names


def test_the_library_takes_every_declaration_and_says_what_it_means() -> None:
    assert set(DECLARATIONS) <= set(TableDeclarations.__annotations__)
    said = inspect.getdoc(shoal.protect) or ""
    for name in set(DECLARATIONS):
        assert f"    {name}: " in said, name


def test_no_parameter_is_called_like_another_option() -> None:
    """A method from outside is refused for it (`test_extend.py`)."""
    assert not set(SETTINGS) & ({*DECLARATIONS} | _OPTIONS)
    for command in FLAGS.values():
        of_command = {flag.name for flag in command if not flag.of_methods} - {*DECLARATIONS, "target"}
        compared = {"methods", "ks", "splits", "noises", "deltas"}
        measured = {"seeds", "fast", "utility", "max_risk", "claim", "private"}
        assert of_command - compared - measured <= _OPTIONS


@pytest.mark.parametrize("command", FLAGS)
def test_help_shows_the_common_options_on_one_screen_and_the_rest_on_request(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([command, "--help"]) == 0
    short = capsys.readouterr().out
    assert run([command, "--help-all"]) == 0
    full = capsys.readouterr().out
    assert max(map(len, short.splitlines())) <= 80
    assert len(short.splitlines()) <= 44
    if command == "protect":
        assert len(short.splitlines()) <= 40
        groups = [line for line in short.splitlines() if line.endswith(":") and line[0] != " "]
        assert groups == ["Input:", "Guarantee:", "Method:", "Odd values:", "Output:"]
    for flag in FLAGS[command]:
        typed = flag.name.upper() if flag.argument else f"  {flag.typed[0].partition('/')[0]}"
        assert typed in full
        assert flag.common == any(
            line.startswith((f"{typed} ", f"{typed},")) for line in short.splitlines()
        ) or (flag.argument)
        assert " ".join(flag.help.split())[:20] in " ".join(full.split())


@pytest.mark.parametrize("command", FLAGS)
def test_every_parameter_is_explained_by_its_sentence(command: str) -> None:
    helps = {flag.name: flag.help for flag in FLAGS[command]}
    for name, setting in SETTINGS.items():
        if name in helps:
            flag = f"--{name.replace('_', '-')}"
            said = setting.sentence(flag, flag.replace("--", "--no-"))
            assert helps[name].startswith(f"{said[0].upper()}{said[1:]}.")


@every_setting
def test_methods_list_the_sentence(setting: Parameter) -> None:
    for info in shoal.methods():
        if setting.name in info.parameters:
            assert info.parameters[setting.name].startswith(setting.sentence())


def test_the_page_of_methods_is_written_from_the_table() -> None:
    text = PAGE.read_text("utf-8")
    assert with_section(text) == text, "run: python -m tools.settings_page"


def test_a_page_that_says_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text("utf-8")
    other = replace(SETTINGS["remainder"], default="last")
    monkeypatch.setattr("tools.settings_page.parameters", lambda: {**SETTINGS, "remainder": other})
    assert with_section(text) != text


@every_setting
def test_a_recipe_takes_it(setting: Parameter, tmp_path: Path) -> None:
    path = tmp_path / "method.toml"
    path.write_text(f'method = "ranking-dp"\n{setting.name} = 1\n')
    assert load_recipe(path)[setting.name] == 1


@every_setting
def test_a_wrong_value_is_answered_with_what_fits(setting: Parameter) -> None:
    method = next(cls for cls in CLASSES.values() if setting.name in cls.parameters())
    budget = {"epsilon": 1} if "epsilon" in method.parameters() else {}
    if setting.choices:
        with pytest.raises(OptionError) as found:
            method.configure(**{**budget, setting.name: "nonsense"})
        assert setting.name in str(found.value)
        assert all(choice in str(found.value) for choice in setting.choices)
    if setting.least is not None and not setting.form.keyed and setting.name != "sizes":
        too_small = setting.least - 1 if isinstance(setting.least, int) else Fraction(-1)
        with pytest.raises(OptionError, match=setting.name) as found:
            method.configure(**{**budget, setting.name: too_small})
        assert str(found.value)


def test_a_word_that_is_no_setting_gets_a_hint() -> None:
    for name, hint in (("neigbours", "neighbours"), ("outsid", "outside"), ("seeed", "seed")):
        with pytest.raises(OptionError, match=f"unknown option '{name}'. Did you mean '{hint}'"):
            configured("tree-dp", epsilon=1, **{name: 1})


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if "partition" in cls.parameters()])
def test_the_partitions_to_choose_from_are_named(name: str) -> None:
    for partition in CLASSES[name].partitions:  # type: ignore[attr-defined]
        assert partition in SETTINGS["partition"].sentence()


def test_choices_of_a_growing_table_are_read_when_they_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    noise: Any = NOISES
    monkeypatch.setitem(noise, "toy", replace(NOISES["laplace"], about="for this test"))
    assert "toy (for this test)" in SETTINGS["noise"].sentence()
    assert SETTINGS["noise"].read("toy") == "toy"
    assert "toy" in next(flag for flag in protect.protect_flags() if flag.name == "noise").help
