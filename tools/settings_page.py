"""Table of all settings in docs/methods.md, written from the parameters of the methods.

python -m tools.settings_page
"""

from __future__ import annotations

from pathlib import Path

from shoal.mechanisms.parameter_fields import DECLARATIONS, Parameter
from shoal.mechanisms.registry import method_class, names, parameters, taken_by

PAGE = Path(__file__).parents[1] / "docs" / "methods.md"
BEGIN, END = "<!-- written by python -m tools.settings_page -->", "<!-- end of what is written -->"
_HEAD = """\
## Settings

Arguments of `shoal.protect`, keys of a recipe and, with dashes for underscores, options of `shoal protect`, `audit` \
and `tune`. A method with a different default is named beside it. *Columns* are the kinds of column that a setting \
applies to, and *of* lists the methods that accept it, where these are few.
"""


def table(settings: list[Parameter]) -> list[str]:
    lines = [
        "| setting | what it does | values | default | columns | of |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for setting in settings:
        some = ", ".join(f"`{name}`" for name in taken_by(setting.name))
        kinds = "all" if len(setting.kinds) == 4 else ", ".join(setting.kinds)
        cells = [f"`{setting.name}`", setting.sentence(), setting.range, default_words(setting), kinds, some]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def default_words(setting: Parameter) -> str:
    """The default, and the methods whose own differs."""
    shown = [setting.usual]
    differing: dict[str, list[str]] = {}
    for name in names():
        own = method_class(name).parameters().get(setting.name, setting)
        if own.default != setting.default:
            differing.setdefault(own.usual, []).append(f"`{name}`")
    for value, takers in differing.items():
        most = (
            ", ".join(takers) if len(takers) <= 6 else f"{', '.join(takers[:4])} and {len(takers) - 4} others"
        )
        shown.append(f"{value} with {most}")
    return "; ".join(part for part in shown if part)


def section() -> str:
    own = [*parameters().values()]
    about = [setting for setting in DECLARATIONS.values() if not setting.name.startswith("tuned_")]
    more = "Settings of the table, for every method:"
    return "\n".join([BEGIN, _HEAD, *table(own), "", more, "", *table(about), END])


def with_section(text: str) -> str:
    """The page, its section on settings as the records are now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + section() + after


def main() -> None:
    PAGE.write_text(with_section(PAGE.read_text("utf-8")), "utf-8")
    print(f"Written to {PAGE}.")


if __name__ == "__main__":
    main()
