"""Which claim holds: a configured method comes in, the model that its mechanism promises leaves, and what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from shoal.errors import OptionError
from shoal.mechanisms.table import ENTRIES
from shoal.method.claims import Promise
from shoal.method.method import Method
from shoal.method.models import Model
from shoal.method.presets import PRESETS
from shoal.method.settings import SETTINGS
from shoal.method.stages import PARTITIONS
from shoal.noise.families import NOISES
from shoal.origin import Outside
from shoal.text import Message

_SOME = Fraction(1, 10**6)


def privacy_model(method: Method, attributes: int, nominal: int = 0) -> Model:
    """The claim that holds for a method on this many attributes, so many of which are nominal.

    Guarantee:
        A replaced record that touches only its own cluster of one, or the rank-fixed clusters of a single
        attribute (or of several whose columns are not linked), leaves the noise calibrated to all that
        changes: claim `dp`. Boxes that are themselves drawn under the budget are paid for: claim `dp`. Insensitive
        clusters change by one record each, and strict composition pays for all of them: claim `dp`. In every
        other case clusters may move with the record: `dp-given-partition`. Noise that is calibrated to the actual
        records protects those against their neighbours only: `idp-given-partition`. Moments beyond the mean are
        protected given the partition only. A stage from outside the package without accounting that passed: `none`.

    Reference:
        docs/proofs/sums.md, docs/proofs/tree.md, docs/proofs/individual.md, docs/proofs/insensitive.md,
        docs/proofs/moments.md; PSD-2014, Lemma 1; MDAI-2017, section 3.
    """
    if not all(stage.accounted for _, stage in _outside(method)):
        return "none"
    return ENTRIES[method.mechanism].claim.case(method, attributes, nominal).model


def promise_of(method: Method, attributes: int, nominal: int = 0) -> Promise:
    """What the statement of a release is computed from."""
    conditions = tuple(
        Message.of("stage-from-outside", stage=what, who=stage.who, pairs=stage.pairs)
        for what, stage in _outside(method)
        if stage.accounted
    )
    claim = ENTRIES[method.mechanism].claim
    own = not any(True for _ in _outside(method))
    return Promise(privacy_model(method, attributes, nominal), claim.shows_gaps, conditions, own)


def _outside(method: Method) -> Iterator[tuple[Message, Outside]]:
    """The stages of a method that are no part of the package."""
    stages = (
        ("the-mechanism", method.mechanism, ENTRIES[method.mechanism].outside),
        ("the-partition", method.partition, PARTITIONS[method.partition].outside),
        ("the-noise", method.noise, NOISES[method.noise].outside),
    )
    for code, name, outside in stages:
        if outside is not None:
            yield Message.of(code, name=name), outside


def noise_allowed(method: Method, attributes: int) -> None:
    """Refuse noise that would not keep the claim of the method on this many attributes.

    Guarantee:
        Staircase and box noise spend the whole ε of a block (the sums of one cluster) on any change of it, however
        small. They pass only where a record touches a single block of each attribute group: clusters of one record,
        and clusters that the claim takes as fixed; or where every block has an ε of its own and the budget pays for all
        of them: insensitive clusters. Laplace noise is measured in L1 norm over all blocks
        and always passes.

    Raises:
        OptionError: with the reason.

    Reference:
        docs/proofs/staircase.md, sections 3 and 4.
    """
    if not NOISES[method.noise].blockwise or method.stability in ("record", "each"):
        return
    blocks = ENTRIES[method.mechanism].claim.blocks
    if blocks is not None:
        raise OptionError(
            "noise-not-method", option="noise", noise=method.noise, method=method.name, blocks=blocks
        )
    if privacy_model(method, attributes) == "dp":
        raise OptionError(
            "noise-breaks-claim-of-a-column" if attributes == 1 else "noise-breaks-claim-without-link",
            option="noise",
            found=method.noise,
            method=method.name,
        )


def claims(method: Method) -> str:
    """The claims a preset can carry, in words, computed from the same rule as the statement."""
    one, several = privacy_model(method, 1), privacy_model(method, 2)
    unlinked = privacy_model(replace(method, link=False), 2) if "link" in method.adjustable else several
    if "composition" in method.adjustable:
        published = privacy_model(replace(method, composition="parallel"), 2)
        return _claim("claim-with-composition", several, published)
    if "delta" in method.adjustable and method.pure:
        return _claim("claim-with-delta", several, privacy_model(replace(method, delta=_SOME), 2))
    if "t" in method.adjustable and method.t is None:
        return _claim("claim-with-t", several, privacy_model(replace(method, t=2), 2))
    if one == several == unlinked:
        return one
    code = "claim-for-one" if unlinked != one else "claim-for-one-or-unlinked"
    ordered = "nominal" in method.kinds and privacy_model(method, 1, nominal=1) != one
    return _claim(f"{code}-ordered" if ordered else code, several, one)


def _claim(code: str, usual: Model, other: Model) -> str:
    return str(Message.of(code, usual=usual, other=other))


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """What `shoal methods` lists about a preset. The claim is computed from the method's stages."""

    name: str
    paper: str
    about: str
    claim: str
    parameters: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "paper": self.paper,
            "about": self.about,
            "claim": self.claim,
            "parameters": dict(self.parameters),
        }


def methods() -> list[MethodInfo]:
    """Every preset with its paper, claim and parameters.

    >>> [info.name for info in methods()][:8]
    ['pairs-dp', 'laplace', 'mdav-dp', 'ranking-dp', 'optimal-dp', 'idp-ls', 'idp-cbls', 'insensitive-dp']
    """
    return [
        MethodInfo(
            name=method.name,
            paper=method.paper,
            about=method.about,
            claim=claims(method),
            parameters={
                option: SETTINGS[option].sentence()
                + (f" (default {default})" if (default := getattr(method, option)) is not None else "")
                for option in method.adjustable
            },
        )
        for method in PRESETS.values()
    ]
