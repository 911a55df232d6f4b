"""`shoal registry`: write the record of a release for the registry of differential privacy deployments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.output import complain, messages
from shoal.cli.report import check_place, write_page


def registry(
    release: Annotated[
        Path, typer.Argument(help="The folder that 'shoal protect' wrote.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write the record to this new file instead of printing it.")
    ] = None,
) -> None:
    """Describe a release as a record of the OpenDP registry of differential privacy deployments (YAML).

    Guarantee, parameters and mechanism are those of its statement. Who publishes what for whom comes from the table
    [publication] of the schema; fields that it does not give are listed, and the status is 1 if the registry requires
    one of them.

    Examples:

      shoal registry release

      shoal registry release --out deployment.yaml
    """
    from shoal.release.registry import registry_record

    if out is not None:
        check_place(out)
    found = registry_record(release)
    if out is None:
        print(found.to_yaml(), end="")
    else:
        write_page(out, found.to_yaml())
        messages().print(f"Written to {out}.", markup=False)
    where = "in [publication] of the schema, or in the record"
    if found.required:
        complain(f"required by the registry and not declared: {', '.join(found.required)}. Add them {where}.")
    if found.missing:
        complain(f"asked for and not declared: {', '.join(found.missing)}. Add them {where}.")
    if found.required:
        raise typer.Exit(1)
