"""`shoal methods` and `shoal schema`: what there is to choose from, and a draft to start with."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.output import print_json, print_table


def methods(
    name: Annotated[str | None, typer.Argument(help="Show one method with its options.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the methods: name, paper, claim, parameters.

    Example: shoal methods ranking-dp
    """
    from shoal.mechanisms.registry import method_class
    from shoal.mechanisms.registry import methods as known

    if name is not None:
        method_class(name)
    chosen = [info for info in known() if name in (None, info.name)]
    if json:
        print_json([info.to_dict() for info in chosen])
        return
    print_table(
        ("name", "what it does", "claim", "paper"),
        [(info.name, info.about, info.claim, info.paper) for info in chosen],
    )
    if name is None:
        print("\nOptions of a method: shoal methods NAME.")
        return
    print()
    print_table(
        ("option", "meaning"),
        [(f"--{option.replace('_', '-')}", meaning) for option, meaning in chosen[0].parameters.items()],
    )
