"""Commands whose options are records: flags come in, a command that asks for them leaves.

Options made from the table of settings need the library. They are made when such a command is called, so that listing
the commands stays quick.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

# the sections of a help text, in their order
GROUPS = ("input", "promise", "method", "odd values", "output", "run")
_EVERYTHING = "--help-all"


@dataclass(frozen=True, slots=True)
class Flag:
    """One option of a command.

    Attributes:
        name: under which the command finds what was typed.
        group: the section of the help text, one of `GROUPS`.
        type: what the text is read as; bool for a switch.
        flags: how it is typed; `--name` by default.
        many: it can be repeated.
        argument: it is typed without a name.
        common: shown by `--help`; the others by `--help-all`.
        placeholder: what stands for the value in the help text.
        required: the command cannot do without it.
        checks: what typer is told besides: min, max, envvar.
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
    checks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def typed(self) -> tuple[str, ...]:
        return self.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def parameter(self) -> inspect.Parameter:
        """The parameter of a function that typer makes this option of."""
        kept = self.default is not None
        annotation: Any = list[self.type] if self.many else self.type  # type: ignore[name-defined]
        if self.argument:
            how = typer.Argument(help=self.help, metavar=self.name.upper(), show_default=False)
            return self._parameter(Annotated[annotation, how], inspect.Parameter.empty)
        how = typer.Option(*self.typed, help=self.help, show_default=kept, **self.checks)
        if self.required:
            return self._parameter(Annotated[annotation, how], inspect.Parameter.empty)
        return self._parameter(Annotated[annotation if kept else annotation | None, how], self.default)

    def _parameter(self, annotation: Any, default: Any) -> inspect.Parameter:
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )

    @property
    def row(self) -> tuple[str, str]:
        """How it is typed, and what it does, for a help text."""
        if self.argument:
            return self.name.upper(), self.help
        word = "" if self.type is bool else self.placeholder or self.name.upper().replace("_", "-")
        typed = ", ".join(flag.replace("/", " / ") for flag in self.typed)
        default = f" [default: {self.default}]" if self.default not in (None, False) else ""
        return f"{typed} {word}".rstrip(), self.help + default


class Commands(TyperGroup):
    """The program: its help text has the first sentence of every command, in full."""

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
    """A command that is told what was typed as one mapping."""

    function: Callable[[Mapping[str, Any]], None]
    flags: Callable[[], Sequence[Flag]]

    @functools.cached_property
    def made(self) -> TyperCommand:
        """The command that typer makes of a function with these parameters."""

        def call(**typed: Any) -> None:
            type(self).function({name: value for name, value in typed.items() if name != "help_all"})

        parameters = [flag.parameter for flag in type(self).flags()]
        call.__signature__ = inspect.Signature([*parameters, _HELP_ALL])  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(self.name)(call)
        made = typer.main.get_command(app)
        assert isinstance(made, TyperCommand)
        return made

    def get_params(self, ctx: Any) -> list[Any]:
        return [*self.made.params, *super().get_params(ctx)]

    def invoke(self, ctx: Any) -> Any:
        return self.made.invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        everything = bool(ctx.meta.get(_EVERYTHING))
        text = inspect.cleandoc(self.help or "")
        first, _, more = text.partition("\n\n")
        words = [flag.name.upper() for flag in type(self).flags() if flag.argument]
        formatter.write_usage(ctx.command_path, " ".join([*words, "[OPTIONS]"]))
        formatter.write_paragraph()
        formatter.write_text(first)
        if everything:
            formatter.write("\n" + more + "\n")
        flags = [flag for flag in type(self).flags() if everything or flag.common]
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


def _show_everything(ctx: typer.Context, value: bool) -> None:
    if value:
        ctx.meta[_EVERYTHING] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


_HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option(_EVERYTHING, is_eager=True, callback=_show_everything)],
)


def add_table_command(
    app: typer.Typer,
    function: Callable[[Mapping[str, Any]], None],
    flags: Callable[[], Sequence[Flag]],
) -> None:
    """Add a command to the program: its name and help text are those of the function."""

    def listed() -> None:
        """What the list of commands shows; the options come when the command is called."""

    listed.__doc__ = function.__doc__
    body = {"function": staticmethod(function), "flags": staticmethod(functools.cache(flags))}
    made = type(TableCommand.__name__, (TableCommand,), body)
    app.command(function.__name__, cls=made)(listed)
