"""The `shoal` program: register the commands, run one, and report errors."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import typer

from shoal._version import __version__
from shoal.cli import first_steps, intervals, ledger, measure, options, protect, serve, tune
from shoal.cli.command import Commands, Flag, add_table_command, complain, unknown_flag
from shoal.errors import ShoalError, ShoalWarning

# typer ships its own copy of click in some versions and imports it in others; this is the base class either way
_UsageError: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

_as_usual = warnings.showwarning

app = typer.Typer(
    name="shoal",
    cls=Commands,
    help="Protect microdata for publication, and state exactly which guarantee holds.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _InterruptError(Exception):
    """Ctrl-C, under a name that typer does not handle itself (its versions differ in that)."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(command)
    def call(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt as error:
            raise _InterruptError(*_notes(error)) from None

    return call


# the order of `shoal --help`: commands whose options are records come with these, the others with typer's own
_COMMANDS: tuple[tuple[Callable[..., None], Callable[[], Sequence[Flag]] | None], ...] = (
    (first_steps.demo, None),
    (protect.rehearse, protect.rehearse_flags),
    (protect.protect, protect.protect_flags),
    (protect.redo, protect.redo_flags),
    (measure.evaluate, measure.evaluate_flags),
    (measure.hold_out, None),
    (measure.attack, measure.attack_flags),
    (measure.check, measure.check_flags),
    (measure.risk, measure.risk_flags),
    (tune.tune, tune.tune_flags),
    (tune.choose_bound, tune.choose_bound_flags),
    (tune.audit, tune.audit_flags),
    (intervals.intervals, intervals.intervals_flags),
    (measure.report, None),
    (measure.registry, None),
    (first_steps.reproduce, None),
    (first_steps.methods, None),
    (first_steps.schema, first_steps.schema_flags),
    (ledger.journal, None),
    (serve.studio, None),
    (serve.serve, serve.serve_flags),
    (ledger.ask, None),
)
for _command, _flags in _COMMANDS:
    if _flags is None:
        app.command()(_interruptible(_command))
    else:
        add_table_command(app, _interruptible(_command), _flags, options.OF_METHODS)
for _group in (ledger.ledger, serve.token):
    app.add_typer(_group)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        typer.echo(f"shoal {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@functools.cache
def _program() -> Any:
    """Build the commands and their options once: it takes longer than most error paths."""
    return typer.main.get_command(app)


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 2 for anything the caller can correct."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _shown
            status = _program()(args=arguments, prog_name="shoal", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except typer.Exit as stop:
        return int(stop.exit_code)
    except _UsageError as error:
        # an unknown option of a plain command
        word, near = getattr(error, "option_name", None), getattr(error, "possibilities", None)
        said = None if word is None or near is None else unknown_flag(word, near)
        complain(said or getattr(error, "format_message", error.__str__)())
        return 2
    except ShoalError as error:
        for problem in error.problems:
            complain(problem)
        return 2
    except MemoryError as error:
        words = "not enough memory for this table: use fewer columns, or a ranking method."
        complain(" ".join([words, *_notes(error)]))
        return 2
    except (_InterruptError, KeyboardInterrupt, typer.Abort) as error:
        complain(" ".join(["interrupted, nothing was written.", *map(str, error.args), *_notes(error)]))
        return 130
    except OSError as error:
        where = f"'{error.filename}' " if error.filename else ""
        complain(" ".join([f"{where}cannot be used: {error.strerror or error}.", *_notes(error)]))
        return 2


def _shown(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """A warning of the library as one line; others as Python writes them."""
    if isinstance(message, ShoalWarning):
        complain(message)
    else:
        _as_usual(message, category, *where, **more)


def _notes(error: BaseException) -> list[str]:
    """Notes added to an error, such as that a charge remains."""
    return list(getattr(error, "__notes__", ()))


def main() -> None:
    """Entry point of the `shoal` command."""
    sys.exit(run())
