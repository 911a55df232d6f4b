"""Statements of chapter 3: means, runs and counted facts come in, verdicts leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from papers.study import Claim, counted, judged
from papers.thesis.chapter3_facts import (
    SPREAD_SIZES,
    K,
    known_members,
    linked,
    random_groups,
    swap_chances,
)
from papers.thesis.chapter3_print import CHANGES, SIZES

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
    yield Claim(
        "3.4.1",
        "In the single executions both swaps come closer to the original correlations than MDAV-ID, IR-SWAP closest.",
        ", ".join(f"{method} {value:.4f}" for method, value in runs.items()) + f" (mean change at k = {K}).",
        judged([runs["MDAV-SWAP"] < runs["MDAV-ID"], runs["IR-SWAP"] < runs["MDAV-SWAP"]]),
    )
    for name, where in (("Census", "3.4.1"), ("EIA", "3.4.2")):
        yield from _compared(means, name, where)
    levels = [
        means["Census", method, k] for method, k in (("MDAV-ID", 11), ("MDAV-SWAP", 25), ("IR-SWAP", 300))
    ]
    yield Claim(
        "3.4.1",
        "On Census MDAV-ID with k = 11, MDAV-SWAP with k = 25 and IR-SWAP with k = 300 keep about the same quality.",
        ", ".join(f"{level:.3f}" for level in levels) + ".",
        judged([max(levels) <= _SIMILAR * min(levels)]),
    )
    yield Claim(
        "3.4.1",
        "A mean change close to one says that most dependencies are lost.",
        "It never comes near one: with no correlation left at all it would be "
        + ", ".join(f"{loss:.3f} on {name}" for name, loss in losses.items())
        + ". Half of that is a large loss already, and MDAV-ID at k = 300 is at "
        + ", ".join(f"{means[name, 'MDAV-ID', 300]:.3f}" for name in losses)
        + " because averaging raises correlations.",
        "holds" if min(losses.values()) > 0.9 else "holds partly",
    )
    factors = {
        (name, method): [
            means[name, "MDAV-ID", k] / means[name, method, k] for k in SIZES if (name, method, k) in means
        ]
        for name in ("Census", "EIA")
        for method in ("MDAV-SWAP", "IR-SWAP")
    }
    yield Claim(
        "3.5, abstract",
        "At a given 1/k the new methods keep much more quality than standard k-anonymity.",
        "Mean change of MDAV-ID over that of the swap: "
        + "; ".join(
            f"{method} on {name} {min(found):.1f} to {max(found):.1f}"
            for (name, method), found in factors.items()
        )
        + f". At least {_MUCH:.0f} times in {counted(one >= _MUCH for found in factors.values() for one in found)}.",
        judged(one >= _MUCH for found in factors.values() for one in found),
    )


def _compared(means: Mapping[tuple[str, str, int], float], name: str, where: str) -> Iterator[Claim]:
    sizes = [k for k in SIZES if (name, "MDAV-SWAP", k) in means]
    better = {k: means[name, "MDAV-SWAP", k] < means[name, "MDAV-ID", k] for k in sizes}
    yield Claim(
        where,
        f"MDAV-SWAP is better than MDAV-ID ({name}).",
        f"At {counted(better.values())} sizes{_except(better)}; in print at "
        f"{counted(_printed(name, 'MDAV-SWAP', k) < _printed(name, 'MDAV-ID', k) for k in SIZES)}.",
        judged(better.values()),
    )
    best = {
        k: means[name, "IR-SWAP", k]
        < min(means[name, method, k] for method in ("MDAV-ID", "MDAV-SWAP") if (name, method, k) in means)
        for k in SIZES
    }
    yield Claim(
        where,
        f"IR-SWAP is clearly the best of the three ({name}).",
        f"At {counted(best.values())} sizes{_except(best)}; in print at "
        f"{counted(_printed(name, 'IR-SWAP', k) < _printed(name, 'MDAV-SWAP', k) for k in SIZES)}.",
        judged(best.values()),
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
    yield Claim(
        "3.1, 3.5",
        "In a k-anonymous table a whole group may share a confidential value, which is then disclosed.",
        "Groups by MDAV on A1 to A6 that share a value of A7 to A13: "
        + ", ".join(f"{found} of {total} (k = {k})" for k, (found, total) in shared.items())
        + ".",
        judged([any(found for found, _ in shared.values())]),
    )
    yield Claim(
        "3.1",
        "An intruder who also knows a confidential value re-identifies more precisely, in the extreme with certainty.",
        f"In groups of 5 by A1 to A6, one of A7 to A13 singles out {facts['singled_out']:.0%} of the records.",
        judged([facts["singled_out"] > 0]),
    )
    loss = facts["loss"]
    rises = [later > earlier for earlier, later in pairwise(loss)]
    yield Claim(
        "3.1",
        "The utility of k-anonymity falls quickly with the number of quasi-identifiers.",
        f"Information loss of MDAV, k = 5, z-scores: {loss[0]:.2f}% with one attribute, {loss[3]:.1f}% with four, "
        f"{loss[-1]:.1f}% with all 13; {counted(rises)} steps rise.",
        judged([loss[3] > 2 * loss[0], loss[-1] > 2 * loss[3]]),
    )
    yield Claim(
        "3.2",
        "What makes a table k-anonymous makes it probabilistically k-anonymous.",
        f"After MDAV-ID at k = {K} the smallest set of equal records has {facts['least']}: the best guess is right "
        f"with probability 1/{facts['least']}.",
        judged([facts["least"] >= K]),
    )


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
    yield Claim(
        "3.2, Examples 1 to 3",
        "The chance of a link is the chance of the released values under that link over the sum for all links.",
        f"Bayes' rule over all assignments, enumerated for small mechanisms: {counted(agree)} agree "
        f"({one}, {two}, {three}), with the sum of Example 3 corrected (errata) and all links equally likely "
        "beforehand.",
        "holds partly" if all(agree) else "fails",
    )
    everything, one_less = known_members((1, 2, 3), 2), known_members((1, 2, 3), 1)
    yield Claim(
        "3.2, Definition 5",
        "For any external data set E the chance of a correct link is at most 1/k.",
        "True of an E with quasi-identifiers. Somebody who knows the values of other members of a group of 3 is right "
        f"with probability {one_less} (one known) or {everything} (two known); section 3.3.2 says that such intruders "
        "are left out.",
        "holds partly" if everything > Fraction(1, 3) else "holds",
    )
    yield Claim(
        "3.1",
        "Somebody who knows the confidential values of others in a group re-identifies the rest of it more precisely.",
        f"In a group of 3: with probability {one_less} if one is known, {everything} if two are, instead of 1/3.",
        judged([one_less > Fraction(1, 3), everything > one_less]),
    )
    sampled = [Fraction(size, 6) * swap_chances([[(0, 1), (2, 3)][: size // 2]])[0] for size in (2, 4)]
    yield Claim(
        "3.3.1",
        "Releasing all records gives the intruder the best information: what is protected then is so in a sample too.",
        "Six records, a random sample of 2 or of 4, swapped in pairs: the record of a person is there with a value of "
        f"their own with probability {' or '.join(map(str, sampled))}, against 1/2 with all records; given that it is "
        "there, 1/2 again.",
        judged(chance <= Fraction(1, 2) for chance in sampled),
    )
    inside, outside = swap_chances([[(0, 1, 2), (3, 4, 5)]])[1:4:2]
    kept, other = swap_chances(random_groups(6, 3))[:2]
    yield Claim(
        "3.3.1",
        "Inside a group of k the right link has probability 1/k, outside it 0.",
        f"All permutations of two groups of three: {inside} and {outside}. A larger group has 1/|group|, so at most "
        "1/k. That the shuffle is uniform, and what a broken one looks like: `tests/kanonymity/test_swap.py`.",
        judged([inside == Fraction(1, 3), outside == 0]),
    )
    yield Claim(
        "3.3.1",
        "Random groups give probabilistic |T|-anonymity.",
        f"Six records, all groups of three, all permutations: a record keeps its own value with probability {kept}, "
        f"and gets that of another with {other} each. The guess that nothing moved is right with 1/k, not 1/6.",
        judged([kept <= Fraction(1, 6)]),
    )


def _groups(facts: Mapping[str, Any], sizes: Mapping[int, Sequence[float]]) -> Iterator[Claim]:
    odd = [(k, others, largest) for k, others, largest in facts["sizes"]]
    yield Claim(
        "3.3.1",
        "MDAV makes groups of k, except perhaps one of k to 2k - 1.",
        f"True at {counted(others <= 1 and largest < 2 * k for k, others, largest in odd)} sizes on Census.",
        judged(others <= 1 and largest < 2 * k for k, others, largest in odd),
    )
    smaller = {k: after < before for k, (before, after) in sizes.items()}
    yield Claim(
        "3.3.1",
        "Groups of variable size (V-MDAV) lose less information on clustered data.",
        "EIA, gain factor 1.1, loss of MDAV and of V-MDAV: "
        + ", ".join(f"{before:.2f}% and {after:.2f}% (k = {k})" for k, (before, after) in sizes.items())
        + ".",
        judged(smaller.values()),
    )
    yield Claim(
        "3.3.1",
        "μ-Approx stays within a bound of the optimal clustering.",
        "Cited from elsewhere; Shoal does not have that heuristic.",
        "not tested",
    )
    by_kind = facts["intruders"]
    yield Claim(
        "3.3.1",
        "Groups at random hurt data quality, homogeneous groups keep it better, at a higher risk of attribute "
        "disclosure.",
        f"Mean change of correlations {by_kind['random']:.3f} at random, {by_kind['informed']:.3f} with MDAV groups; "
        "deviation of a protected attribute inside groups, as a share of that in the table: "
        f"{facts['spread']['9']['random']:.2f} and {facts['spread']['9']['mdav']:.2f} (k = 9).",
        judged(
            [
                by_kind["informed"] < by_kind["random"],
                facts["spread"]["9"]["mdav"] < facts["spread"]["9"]["random"],
            ]
        ),
    )
    yield Claim(
        "3.3.2",
        "The stronger the intruder, the lower the utility.",
        f"MDAV-SWAP against somebody who knows A1 to A6: mean change {by_kind['uninformed']:.3f}; who knows all "
        f"attributes but one: {by_kind['informed']:.3f}.",
        judged([by_kind["informed"] > by_kind["uninformed"]]),
    )


def _intruders(facts: Mapping[str, Any]) -> Iterator[Claim]:
    spread = facts["spread"]
    closer = [spread[str(k)]["ranking"] < spread[str(k)]["mdav"] for k in SPREAD_SIZES]
    yield Claim(
        "3.3.3, 3.5",
        "Individual ranking swaps values that are similar: better quality, and less diversity inside groups.",
        "Deviation inside groups as a share of that in the table, ranking and MDAV: "
        + ", ".join(
            f"{spread[str(k)]['ranking']:.2f} and {spread[str(k)]['mdav']:.2f} (k = {k})"
            for k in (5, 25, 300)
        )
        + ".",
        judged(closer),
    )
    grows = [
        spread[str(later)]["ranking"] > spread[str(earlier)]["ranking"]
        for earlier, later in pairwise(SPREAD_SIZES)
    ]
    yield Claim(
        "3.3.3, 3.5",
        "A larger k makes up for that: with ranking, k is tied to the variability inside groups.",
        f"The deviation inside groups grows at {counted(grows)} steps of k; at k = 300 it is "
        f"{spread['300']['ranking']:.2f}, what MDAV groups have at k = 9 ({spread['9']['mdav']:.2f}).",
        judged(grows),
    )
    yield Claim(
        "3.3.3",
        "One attribute at a time needs no normalisation.",
        "Rank groups of a rescaled attribute are the same.",
        judged([facts["rescaled"]]),
    )
    yield Claim(
        "3.4.1",
        "Swapping changes no attribute's mean or variance, and no correlation of attributes that are not protected.",
        "After both swaps every column holds the same values as before.",
        judged(facts["kept"]),
    )
    yield Claim(
        "3.3, 3.5",
        "Permuting the quasi-identifiers is the same as permuting the confidential values the other way round.",
        "Either way the released records of Census are the same set.",
        judged([facts["either_side"]]),
    )
    yield Claim(
        "3.3",
        "Swapping does not hide who is in the table: identities are not masked.",
        "After both swaps the quasi-identifiers of Census are released as they are, record by record.",
        judged([facts["presence"]]),
    )
    again = facts["again"]
    yield Claim(
        "3.4.1",
        "Single executions may come out otherwise another time.",
        "Another run releases something else: "
        + ", ".join(f"{method} {'yes' if other else 'no'}" for method, other in again.items())
        + ". MDAV-ID draws nothing, so that a hundred runs of it are one.",
        judged(again.values()),
    )
    open_ = facts["guessed"]
    yield Claim(
        "3.3",
        "Intruders guess the value of a confidential attribute with probability 1/k at most.",
        "Whose a value is, yes. The value itself is guessed more often where it repeats inside a group: true of "
        + ", ".join(f"{open_[str(k)]:.0%} (k = {k})" for k in (5, 25, 300))
        + " of the protected values of Census after IR-SWAP.",
        "holds partly" if max(open_.values()) > 0 else "holds",
    )
    seen = facts["rank_groups_seen"]
    yield Claim(
        "3.5",
        "Dissociating each confidential attribute keeps informed intruders from using one for another.",
        "The link is broken up to the group. The group is not hidden: ranking the released column again gives "
        f"{min(seen):.0%} to {max(seen):.0%} of the records their group (all of them where no value repeats), so its "
        "range is known to everybody.",
        "holds partly" if max(seen) > 0.5 else "holds",
    )
    yield Claim(
        "3.5",
        "Every confidential attribute can have a k of its own.",
        "`swap_ranking` with seven sizes makes groups of just these sizes.",
        judged([facts["own_k"]]),
    )
