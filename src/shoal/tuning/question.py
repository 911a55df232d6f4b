"""The question of a tuning: a table, a budget and a grid come in, prepared releases that can be compared leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.display import internal
from shoal.errors import ClaimError, InputError, OptionError, ShoalError
from shoal.io import Table
from shoal.method.recipe import settled_text
from shoal.method.registry import method_class
from shoal.method.tuned import Tuned, together, tuned_settings
from shoal.partition.base import check_k
from shoal.release.leaving import public_schema
from shoal.release.protect import Preparation, prepare
from shoal.text import Message
from shoal.tuning.grid import Setting


@internal()
@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about which table; everything but how the answer is computed."""

    table: Table
    epsilon: Any
    declared: Mapping[str, Any]
    options: Mapping[str, Any]

    def prepared(self, setting: Setting, **more: Any) -> Preparation:
        """A release with this setting, settled but not made."""
        known = method_class(setting.method).parameters()
        fixed = {name: value for name, value in self.options.items() if name in known}
        return prepare(
            self.table,
            method=setting.method,
            epsilon=self.epsilon if "epsilon" in known else None,
            **{**self.declared, **fixed, **setting.options, **more},
        )


def followed(question: Question, setting: Setting, tuned: Tuned | None) -> Preparation:
    """A release of the same records with a setting that was chosen on them."""
    return question.prepared(setting, tuned=together(tuned_settings(question.declared["tuned"]), tuned))


def recipe_of(prepared: Preparation) -> str:
    """`method.toml` of a setting, with the mark of what was chosen on the records."""
    schema = public_schema(prepared.described, prepared.declared)
    return settled_text(prepared.method, schema, prepared.declared, prepared.described.columns)


def candidates_of(
    question: Question, grid: Sequence[Setting], claim: str | None
) -> tuple[dict[Setting, Preparation], dict[Setting, Message]]:
    """The settings that can be compared, and the reasons why others cannot."""
    prepared: dict[Setting, Preparation] = {}
    refused: dict[Setting, Message] = {}
    errors: list[ShoalError] = []
    for setting in grid:
        try:
            found = question.prepared(setting)
            check_k(found.method.size, found.described.n)
        except (InputError, OptionError, ClaimError) as error:
            refused[setting] = error.message
            errors.append(error)
            continue
        if claim is not None and found.statement.model != claim:
            refused[setting] = Message.of("claims-other", model=found.statement.model, claim=claim)
        else:
            prepared[setting] = found
    if not prepared and errors:
        raise errors[0]
    if not prepared:
        raise OptionError("no-setting-claims", claim=claim, reason=next(iter(refused.values())))
    widest = max(
        (found.described for found in prepared.values()), key=lambda described: len(described.columns)
    )
    for setting, found in list(prepared.items()):
        left_out = [name for name in widest.columns if name not in found.described.columns]
        if left_out:
            kind = widest.attribute(left_out[0]).kind
            refused[setting] = Message.of("leaves-column-out", column=left_out[0], kind=kind)
            del prepared[setting]
    return prepared, refused
