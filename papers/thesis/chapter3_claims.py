"""Verdicts on the claims of chapter 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from papers.study import Claim, counted
from papers.texts import judging
from papers.thesis.chapter3_facts import SPREAD_SIZES, K, known_members, linked, random_groups, swap_chances
from papers.thesis.chapter3_print import CHANGES, SIZES

judge = judging("thesis/chapter3")

# "similar" means: by no more than this factor
_SIMILAR = 1.25
# "much" means: by at least this factor
_MUCH = 2.0


def claims(
    means: Mapping[tuple[str, str, int], float], runs: Mapping[str, float], losses: Mapping[str, float]
) -> Iterator[Claim]:
    """Statements about the tables.

    Args:
        means: mean |change| by data set, method and k.
        runs: mean |change| on Census at k = 12 by method.
        losses: mean |change| if no correlation were left, by data set.
    """
    yield judge(
        "single-executions-both-swaps",
        [runs["MDAV-SWAP"] < runs["MDAV-ID"], runs["IR-SWAP"] < runs["MDAV-SWAP"]],
        ", ".join(f"{method} {value:.4f}" for method, value in runs.items()),
        K,
    )
    for name, where in (("Census", "3.4.1"), ("EIA", "3.4.2")):
        yield from _compared(means, name, where)
    levels = [
        means["Census", method, k] for method, k in (("MDAV-ID", 11), ("MDAV-SWAP", 25), ("IR-SWAP", 300))
    ]
    yield judge(
        "census-mdav-id-k",
        [max(levels) <= _SIMILAR * min(levels)],
        ", ".join(f"{level:.3f}" for level in levels),
    )
    yield judge(
        "mean-change-close-says",
        "holds" if min(losses.values()) > 0.9 else "holds partly",
        ", ".join(f"{loss:.3f} on {name}" for name, loss in losses.items()),
        ", ".join(f"{means[name, 'MDAV-ID', 300]:.3f}" for name in losses),
    )
    factors = {
        (name, method): [
            means[name, "MDAV-ID", k] / means[name, method, k] for k in SIZES if (name, method, k) in means
        ]
        for name in ("Census", "EIA")
        for method in ("MDAV-SWAP", "IR-SWAP")
    }
    yield judge(
        "given-1-k-new",
        (one >= _MUCH for found in factors.values() for one in found),
        "; ".join(
            f"{method} on {name} {min(found):.1f} to {max(found):.1f}"
            for (name, method), found in factors.items()
        ),
        _MUCH,
    )


def _compared(means: Mapping[tuple[str, str, int], float], name: str, where: str) -> Iterator[Claim]:
    sizes = [k for k in SIZES if (name, "MDAV-SWAP", k) in means]
    better = {k: means[name, "MDAV-SWAP", k] < means[name, "MDAV-ID", k] for k in sizes}
    yield judge(
        "mdav-swap-better-mdav",
        better.values(),
        where,
        name,
        _except(better),
        counted(_printed(name, "MDAV-SWAP", k) < _printed(name, "MDAV-ID", k) for k in SIZES),
    )
    best = {
        k: means[name, "IR-SWAP", k]
        < min(means[name, method, k] for method in ("MDAV-ID", "MDAV-SWAP") if (name, method, k) in means)
        for k in SIZES
    }
    yield judge(
        "ir-swap-clearly-best",
        best.values(),
        where,
        name,
        _except(best),
        counted(_printed(name, "IR-SWAP", k) < _printed(name, "MDAV-SWAP", k) for k in SIZES),
    )


def _printed(name: str, method: str, k: int) -> float:
    return float(CHANGES[name][method][SIZES.index(k)][0])


def _except(found: Mapping[int, bool]) -> str:
    missed = [str(k) for k, hit in found.items() if not hit]
    return f", not at k = {', '.join(missed)}" if missed else ""


def text_claims(facts: Mapping[str, Any], sizes: Mapping[int, Sequence[float]]) -> Iterator[Claim]:
    """Statements about the model and the methods, in the order of the text."""
    yield from _limits(facts)
    yield from _model()
    yield from _groups(facts, sizes)
    yield from _intruders(facts)


def _limits(facts: Mapping[str, Any]) -> Iterator[Claim]:
    shared = {k: tuple(found) for k, found in facts["constant"].items()}
    yield judge(
        "k-anonymous-table-whole",
        [any(found for found, _ in shared.values())],
        ", ".join(f"{found} of {total} (k = {k})" for k, (found, total) in shared.items()),
    )
    yield judge("intruder-who-also-knows", [facts["singled_out"] > 0], facts["singled_out"])
    loss = facts["loss"]
    rises = [later > earlier for earlier, later in pairwise(loss)]
    yield judge(
        "utility-k-anonymity-falls",
        [loss[3] > 2 * loss[0], loss[-1] > 2 * loss[3]],
        loss[0],
        loss[3],
        loss[-1],
        counted(rises),
    )
    yield judge("what-makes-table-k", [facts["least"] >= K], K, facts["least"], facts["least"])


def _model() -> Iterator[Claim]:
    half, third = Fraction(1, 2), Fraction(1, 3)
    one = linked([[Fraction(3, 4)], [Fraction(1, 4)]])
    two = linked([[Fraction(3, 4), Fraction(1, 4)], [half, half]])
    three = linked([[half, third], [third, third], [Fraction(1, 6), half]])
    # both orders of Example 2, and all ways of Example 3, by hand
    by_hand = (
        Fraction(3, 4) / (Fraction(3, 4) + Fraction(1, 4)),
        (Fraction(3, 4) * half) / (Fraction(3, 4) * half + half * Fraction(1, 4)),
        (half * third + half * half)
        / (
            half * third
            + half * half
            + third * third
            + third * half
            + Fraction(1, 6) * third
            + Fraction(1, 6) * third
        ),
    )
    agree = [found == expected for found, expected in zip((one, two, three), by_hand, strict=True)]
    yield judge(
        "chance-link-chance-released",
        "holds partly" if all(agree) else "fails",
        counted(agree),
        one,
        two,
        three,
    )
    everything, one_less = known_members((1, 2, 3), 2), known_members((1, 2, 3), 1)
    yield judge(
        "any-external-data-set",
        "holds partly" if everything > Fraction(1, 3) else "holds",
        one_less,
        everything,
    )
    yield judge(
        "somebody-who-knows-confidential",
        [one_less > Fraction(1, 3), everything > one_less],
        one_less,
        everything,
    )
    sampled = [Fraction(size, 6) * swap_chances([[(0, 1), (2, 3)][: size // 2]])[0] for size in (2, 4)]
    yield judge(
        "releasing-all-records-gives",
        (chance <= Fraction(1, 2) for chance in sampled),
        " or ".join(map(str, sampled)),
    )
    inside, outside = swap_chances([[(0, 1, 2), (3, 4, 5)]])[1:4:2]
    kept, other = swap_chances(random_groups(6, 3))[:2]
    yield judge("inside-group-k-right", [inside == Fraction(1, 3), outside == 0], inside, outside)
    yield judge("random-groups-give-probabilistic", [kept <= Fraction(1, 6)], kept, other)


def _groups(facts: Mapping[str, Any], sizes: Mapping[int, Sequence[float]]) -> Iterator[Claim]:
    odd = [(k, others, largest) for k, others, largest in facts["sizes"]]
    yield judge("mdav-makes-groups-k", (others <= 1 and largest < 2 * k for k, others, largest in odd))
    smaller = {k: after < before for k, (before, after) in sizes.items()}
    yield judge(
        "groups-variable-size-v",
        smaller.values(),
        ", ".join(f"{before:.2f}% and {after:.2f}% (k = {k})" for k, (before, after) in sizes.items()),
    )
    yield judge("approx-stays-within-bound", "not tested")
    by_kind = facts["intruders"]
    yield judge(
        "groups-random-hurt-data",
        [
            by_kind["informed"] < by_kind["random"],
            facts["spread"]["9"]["mdav"] < facts["spread"]["9"]["random"],
        ],
        by_kind["random"],
        by_kind["informed"],
        facts["spread"]["9"]["random"],
        facts["spread"]["9"]["mdav"],
    )
    yield judge(
        "stronger-intruder-lower-utility",
        [by_kind["informed"] > by_kind["uninformed"]],
        by_kind["uninformed"],
        by_kind["informed"],
    )


def _intruders(facts: Mapping[str, Any]) -> Iterator[Claim]:
    spread = facts["spread"]
    closer = [spread[str(k)]["ranking"] < spread[str(k)]["mdav"] for k in SPREAD_SIZES]
    yield judge(
        "individual-ranking-swaps-values",
        closer,
        ", ".join(
            f"{spread[str(k)]['ranking']:.2f} and {spread[str(k)]['mdav']:.2f} (k = {k})"
            for k in (5, 25, 300)
        ),
    )
    grows = [
        spread[str(later)]["ranking"] > spread[str(earlier)]["ranking"]
        for earlier, later in pairwise(SPREAD_SIZES)
    ]
    yield judge("larger-k-makes-up", grows, spread["300"]["ranking"], spread["9"]["mdav"])
    yield judge("attribute-time-needs-normalisation", [facts["rescaled"]])
    yield judge("swapping-changes-attributes-mean", facts["kept"])
    yield judge("permuting-quasi-identifiers-same", [facts["either_side"]])
    yield judge("swapping-does-hide-who", [facts["presence"]])
    again = facts["again"]
    yield judge(
        "single-executions-may-come",
        again.values(),
        ", ".join(f"{method} {'yes' if other else 'no'}" for method, other in again.items()),
    )
    open_ = facts["guessed"]
    yield judge(
        "intruders-guess-value-confidential",
        "holds partly" if max(open_.values()) > 0 else "holds",
        ", ".join(f"{open_[str(k)]:.0%} (k = {k})" for k in (5, 25, 300)),
    )
    seen = facts["rank_groups_seen"]
    yield judge(
        "dissociating-each-confidential-attribute",
        "holds partly" if max(seen) > 0.5 else "holds",
        min(seen),
        max(seen),
    )
    yield judge("every-confidential-attribute-k", [facts["own_k"]])
