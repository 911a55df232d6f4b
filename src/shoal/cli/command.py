"""Command-line framework: options as records, and output for a terminal or a pipe."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from shoal.errors import OptionError, closest
from shoal.text import Message

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.errors import CodeAndFacts
    from shoal.evaluation import Evaluation, Verdict
    from shoal.privacy import PrivacyStatement, PublicVerdict
    from shoal.progress import Progress


# the sections of a help text, in their order
GROUPS = ("input", "guarantee", "method", "statistics", "odd values", "output", "run")
_EVERYTHING = "--help-all"
_HELP = ("--help", "-h", _EVERYTHING)
# keys of the notes of a call, for the method named and its flags
METHOD, _FLAGS = "shoal.method", "shoal.flags"
# flags with the name of an option that queries and other calls have too: messages use the library's name for these
_SPELLED_ALIKE = (
    "claim",
    "conf",
    "confidence",
    "header_row",
    "people",
    "port",
    "range",
    "runs",
    "tolerance",
    "utility",
    "view",
    "workers",
)
# the flags of every table command
_table_flags: list[Callable[[], Sequence[Flag]]] = []
# an integer; also written 5.0, by programs without an integer type
_WHOLE = re.compile(r"\s*([+-]?\d+(?:_\d+)*)(?:\.0*)?\s*")


@dataclass(frozen=True, slots=True)
class Flag:
    """One option of a command.

    Attributes:
        name: key of its value for the command: the name of the library's option.
        group: the section of the help text, one of `GROUPS`.
        type: how the text is read; bool for a switch.
        flags: its spellings; `--name` by default.
        many: it is repeatable.
        argument: it is a positional argument; the last one may be repeatable.
        common: shown by `--help`; the others by `--help-all`.
        placeholder: stands for the value in the help text.
        required: whether it is mandatory.
        least, most: limits of a number, inclusive.
        variable: the environment variable with its default value.
        of_methods: it is a parameter of methods, read in the form of the method named.
        usual: the default value as shown in a help text; `default` where that is passed on.
    """

    name: str
    help: str
    group: str = "run"
    type: Any = str
    flags: tuple[str, ...] = ()
    default: Any = None
    many: bool = False
    argument: bool = False
    common: bool = False
    placeholder: str = ""
    required: bool = False
    least: float | None = None
    most: float | None = None
    variable: str = ""
    of_methods: bool = False
    usual: str = ""

    @property
    def typed(self) -> tuple[str, ...]:
        return self.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def spellings(self) -> Mapping[str, bool]:
        """Every spelling, and whether it turns a switch on."""
        found: dict[str, bool] = {}
        for typed in () if self.argument else self.typed:
            on, _, off = typed.partition("/")
            found |= {on: True, **({off: False} if off else {})}
        return found

    @property
    def row(self) -> tuple[str, str]:
        """Its spellings and its help, for a help text."""
        if self.argument:
            return self.name.upper(), self.help
        word = "" if self.type is bool else self.placeholder or self.name.upper().replace("_", "-")
        typed = ", ".join(flag.replace("/", " / ") for flag in self.typed)
        usual = self.usual or ("" if self.default in (None, False) else self.default)
        return f"{typed} {word}".rstrip(), self.help + (f" [default: {usual}]" if usual != "" else "")

    def read(self, text: str) -> Any:
        """Parse a text.

        Raises:
            OptionError: it is not valid.
        """
        if self.type is int:
            found = _WHOLE.fullmatch(text)
            return self._within(None if found is None else int(found[1]), "flag-not-whole")
        if self.type is float:
            try:
                number = float(text)
            except ValueError:
                number = None
            return self._within(number, "flag-not-number")
        return self.type(text)

    def _within(self, number: float | None, otherwise: str) -> float:
        named = " / ".join(f"'{flag}'" for flag in self.typed)
        if number is None:
            raise OptionError(otherwise, named=named)
        if self.least is not None and not number >= self.least:
            raise OptionError("flag-below", named=named, least=f"{self.least:g}")
        if self.most is not None and not number <= self.most:
            raise OptionError("flag-above", named=named, most=f"{self.most:g}")
        return number

    def value(self, given: Sequence[Any]) -> Any:
        """The value for the command, from the texts and switches given; the last one counts.

        Raises:
            OptionError: it is required, or cannot be parsed.
        """
        texts = given or [text for text in [os.environ.get(self.variable, "")] if text]
        if not texts:
            if self.argument and self.many:
                return []
            if self.argument or self.required:
                code = "argument-missing" if self.argument else "flag-missing"
                raise OptionError(code, named=self.name.upper() if self.argument else self.typed[0])
            return self.default
        values = [text if isinstance(text, bool) else self.read(text) for text in texts]
        return values if self.many else values[-1]


@dataclass(frozen=True, slots=True)
class MethodFlags:
    """How a command adapts its flags to the method named.

    Attributes:
        fitted: returns the flags in the form of the method, given the flags, the words typed and the notes of a call.
        shown: the flags that matter with a method.
        about: the purpose and claim of a method.
    """

    fitted: Callable[[Sequence[Flag], Sequence[str], MutableMapping[str, Any]], Sequence[Flag]]
    shown: Callable[[Sequence[Flag], str], Sequence[Flag]]
    about: Callable[[str], Message]


class Commands(TyperGroup):
    """The program: its help text shows the first sentence of every command in full."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, " ".join((command.help or "").split("\n\n")[0].split()))
                    for name, command in found.items()
                    if command is not None
                ]
            )


class TableCommand(TyperCommand):
    """A command that receives all options as one mapping."""

    function: Callable[[Mapping[str, Any]], None]
    flags: Callable[[], Sequence[Flag]]
    of_methods: MethodFlags

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        flags = ctx.meta[_FLAGS] = type(self).flags()
        if any(flag.of_methods for flag in flags):
            flags = type(self).of_methods.fitted(flags, args, ctx.meta)
        given, left, help_word = sorted_words(flags, args)
        if help_word:
            ctx.meta[_EVERYTHING] = help_word == _EVERYTHING
            typer.echo(ctx.get_help())
            raise typer.Exit
        ctx.params = {flag.name: flag.value(given[flag.name]) for flag in flags}
        if left:
            raise OptionError("words-too-many", words=" ".join(left))
        ctx.args = []
        return []

    def invoke(self, ctx: Any) -> Any:
        return type(self).function(ctx.params)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        everything = bool(ctx.meta.get(_EVERYTHING))
        text = inspect.cleandoc(self.help or "")
        first, _, more = text.partition("\n\n")
        known: Sequence[Flag] = ctx.meta[_FLAGS]
        words = [
            f"[{flag.name.upper()}]..." if flag.many else flag.name.upper() for flag in known if flag.argument
        ]
        formatter.write_usage(ctx.command_path, " ".join([*words, "[OPTIONS]"]))
        formatter.write_paragraph()
        formatter.write_text(first)
        flags = tuple(flag for flag in known if everything or flag.common)
        if everything:
            formatter.write("\n" + more + "\n")
        elif (method := ctx.meta.get(METHOD)) is not None:
            formatter.write_paragraph()
            formatter.write_text(str(type(self).of_methods.about(method)))
            flags = tuple(type(self).of_methods.shown(known, method))
        for group in GROUPS:
            rows = [flag.row for flag in flags if flag.group == group]
            if rows:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(rows, col_max=26)
        formatter.write_paragraph()
        if not everything:
            start = more.index(f"{ctx.command_path} ")
            formatter.write_text(f"Example: {' '.join(more[start:].split(chr(10) * 2)[0].split())}")
            formatter.write_text(f"All options, and more examples: {ctx.command_path} {_EVERYTHING}")


def sorted_words(
    flags: Sequence[Flag], words: Sequence[str]
) -> tuple[dict[str, list[str | bool]], list[str], str]:
    """The words typed for each flag, the surplus words, and the first request for help; empty where there is none.

    >>> flags = (Flag("data", "", argument=True), Flag("k", "", flags=("--k", "-k")), Flag("json", "", type=bool))
    >>> sorted_words(flags, ["a.csv", "--json", "-k5", "--k=7", "--help"])
    ({'data': ['a.csv'], 'k': ['5', '7'], 'json': [True]}, [], '--help')

    Raises:
        OptionError: there is no such flag, or its value is missing or superfluous.
    """
    known = {word: flag for flag in flags for word in flag.spellings}
    given: dict[str, list[str | bool]] = {flag.name: [] for flag in flags}
    plain: list[str] = []
    help_word = ""
    rest = iter(words)
    for word in rest:
        if word == "--":
            plain += rest
        elif len(word) < 2 or word[0] != "-":
            plain.append(word)
        elif word in _HELP:
            help_word = help_word or word
        else:
            spelled, value = _taken_apart(word, known)
            flag = known[spelled]
            if flag.type is not bool:
                text = next(rest, None) if value is None else value
                if text is None:
                    raise OptionError("flag-needs-value", flag=spelled)
                given[flag.name].append(text)
            elif value is not None:
                raise OptionError("flag-takes-no-value", flag=spelled)
            else:
                given[flag.name].append(flag.spellings[spelled])
    for flag in flags:
        if flag.argument and plain:
            taken = len(plain) if flag.many else 1
            given[flag.name] += plain[:taken]
            del plain[:taken]
    return given, plain, help_word


def _taken_apart(word: str, known: Mapping[str, Flag]) -> tuple[str, str | None]:
    """The flag of a word, and the value attached to it, None for none."""
    if word.startswith("--"):
        spelled, equals, value = word.partition("=")
    else:
        spelled, equals, value = word[:2], word[2:], word[2:]
    if spelled not in known:
        raise unknown_flag(spelled, [*known, *_HELP])
    return spelled, value if equals else None


def unknown_flag(word: str, known: Iterable[str]) -> OptionError:
    """The error for an unknown flag, with the most similar one."""
    # compare without the dashes, which make short flags look alike
    hint = closest(word, known) if len(word.lstrip("-")) > 2 else None
    return OptionError("there-no-option", name=word, hint=hint)


def flag(option: str) -> str | None:
    """The flag of a library option, as messages on the command line spell it; None for none.

    >>> flag("spreadsheet_safe"), flag("domains"), flag("work")
    ('--spreadsheet-safe', '--domain', None)
    """
    from shoal.mechanisms import DECLARATIONS, parameters

    if option in _SPELLED_ALIKE:
        return None
    found = _flags_of_commands().get(option)
    if found is None and (option in DECLARATIONS or option in parameters()):
        return f"--{option.replace('_', '-')}"
    return found


@cache
def _flags_of_commands() -> Mapping[str, str]:
    """The flag of every option of a table command, whatever methods there are."""
    return {
        one.name: one.typed[0].partition("/")[0]
        for flags in _table_flags
        for one in flags()
        if not (one.argument or one.of_methods)
    }


def add_table_command(
    app: typer.Typer,
    function: Callable[[Mapping[str, Any]], None],
    flags: Callable[[], Sequence[Flag]],
    of_methods: MethodFlags,
) -> None:
    """Add a command to the program; its name and help text are those of the function."""

    def listed() -> None:
        """The entry in the list of commands; its options are built when it is called."""

    listed.__doc__ = function.__doc__
    body = {"function": staticmethod(function), "flags": staticmethod(flags), "of_methods": of_methods}
    _table_flags.append(flags)
    made = type(TableCommand.__name__, (TableCommand,), body)
    app.command(function.__name__.replace("_", "-"), cls=made)(listed)


def results() -> Console:
    """Standard output; plain text when it is a pipe."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def messages() -> Console:
    """Standard error, for everything except the result."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def worded(said: Message | CodeAndFacts | str) -> str:
    """A message of the library, with the flags of the command line."""
    return said if isinstance(said, str) else said.rendered(flag)


def complain(said: Message | CodeAndFacts | str) -> None:
    """Print one line on standard error with what is wrong and what to do."""
    line = " ".join(worded(said).split())
    print(f"shoal: {line}", file=sys.stderr)


def say_note(said: Message | str) -> None:
    """Print a note to the custodian in dim text."""
    messages().print(f"note: {worded(said)}", markup=False, style="dim")


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns of text: the first as wide as needed, the others share the rest of the line.

    Without rich, which takes longer to import than listing the methods.
    """
    first = max(len(row[0]) for row in [head, *rows])
    left = max(shutil.get_terminal_size((100, 24)).columns, 60) - first
    longest = [max(len(row[place]) for row in [head, *rows]) for place in range(1, len(head))]
    widths = [first, *(max(12, min(most, left * most // sum(longest)) - 2) for most in longest)]
    for row in [head, *rows]:
        cells = [textwrap.wrap(text, width) or [""] for text, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, cells))):
            parts = [cell[line] if line < len(cell) else "" for cell in cells]
            print("  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())


# in a pipe, shorter work is not reported; longer work once per interval
_PATIENCE, _PACE = 30.0, 10.0


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A callback that draws bars on a terminal, and in a pipe prints plain lines about long work."""
    console = messages()
    if not console.is_terminal:
        yield plain_lines(lambda text: print(text, file=sys.stderr, flush=True))
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                # work announced without steps ends when the next work begins
                for other in bars.tasks:
                    bars.update(other.id, visible=other.total != 1)
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield report


def plain_lines(say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Progress:
    """Progress as lines of text: none in the first seconds, then at most one every ten seconds.

    >>> moments = iter([0.0, 1.0, 31.0, 32.0, 50.0])
    >>> tell = plain_lines(print, lambda: next(moments))
    >>> for done in range(4):
    ...     tell("auditing", done, 4)
    auditing: 25%
    auditing: 75%
    """
    began = clock()
    last = began + _PATIENCE - _PACE

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = clock()
        if now - last < _PACE:
            return
        last = now
        say(f"{what}: {done / total:.0%}" if total > 1 else f"{what} ...")

    return report


def say_measures(
    measured: Evaluation, everything: bool, about: str = "internal: facts about the original data"
) -> None:
    """Print the measures: five headline measures, or all; then what was not measured."""
    if everything:
        results().print(measured)
    else:
        results().print(measured.summary(about))
        results().print("Show every measure: --all.", markup=False)
    for remark in measured.remarks:
        results().print(str(remark), markup=False)


def say_verdict(verdict: Verdict | PublicVerdict) -> None:
    """Print the verdict, in the same words for every command."""
    for line in verdict.lines:
        results().print(line, markup=False)


def say_promise(statement: PrivacyStatement) -> None:
    """Print what the guarantee means for a person, then its terms, then whether the release may be published."""
    from shoal.report import explanation

    console = results()
    console.print(explanation(statement.to_dict()).sentence, markup=False)
    console.print(statement.sentence, markup=False)


Result = TypeVar("Result")


def interruptibly(work: Callable[[], Result], spent: Callable[[], str] = lambda: "") -> Result:
    """Run `work` and return its result; Ctrl-C removes partial output and ends the process.

    `spent` returns a message about what cannot be undone.

    A sort or a compiled kernel does not check for signals while it runs, and a table of millions of rows keeps it
    busy for long. Python delivers the signal to the main thread, which has nothing else to do here.
    """
    from shoal.io import remove_unfinished

    results: list[Result] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=body, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
    except KeyboardInterrupt:
        remove_unfinished()
        print(f"shoal: interrupted, nothing was written.{spent()}", file=sys.stderr, flush=True)
        # the worker cannot be stopped from outside, only abandoned
        os._exit(130)
    if errors:
        raise errors[0]
    return results[0]


def charge_words(seen: Collection[tuple[str, bool]]) -> str:
    """Describe the charge of an interrupted publication, from the stages that were seen."""
    from shoal.release import CHARGING
    from shoal.text import Message

    if (CHARGING, True) in seen:
        return f" {Message('ledger-charge-stays')}"
    return f" {Message('ledger-charge-may-stand')}" if (CHARGING, False) in seen else ""


def noting(progress: Progress, seen: set[tuple[str, bool]]) -> Progress:
    """Progress that also records the stages begun and finished."""

    def report(what: str, done: int, total: int) -> None:
        seen.add((what, done == total))
        progress(what, done, total)

    return report
