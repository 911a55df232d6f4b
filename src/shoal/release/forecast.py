"""Forecasts: the expected noise of a release and advice about it, from public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import display
from shoal.arguments import as_names
from shoal.columns import (
    TAKEN_FROM_DATA,
    Attribute,
    Derived,
    Described,
    Provenance,
    Schema,
    applied_rules,
    releasable,
)
from shoal.display import displayed
from shoal.errors import OptionError, Problems, ShoalError, closest
from shoal.io import first_formula, read
from shoal.mechanisms import DEFAULT_METHOD, Method, ShareNoise, configured, declared_strata, within_strata
from shoal.numbers import decimal_text, exact_text
from shoal.partition import check_k
from shoal.privacy import MOST_RANGE_ERROR, MOST_SHARE_ERROR, NO_NOISE, Plan
from shoal.text import Message

# the noise that advice aims at, as a share of the range
CALM = 0.1


@displayed(display.of_expected_noise)
@dataclass(frozen=True, slots=True)
class ExpectedNoise:
    """The noise on the released values of one column.

    Attributes:
        column: its name.
        standard_deviation: of the noise, in the column's units, before values are clipped to their domain, for
            a cluster of the minimum size; larger clusters have less. None where public facts do not determine it.
        share_of_range: the same, as a share of the width of the domain.
        records: minimum number of records that share the noisy value.
        reason: why it is unknown; `why` has it as text. None where it is known.
        share_of_rows: for synthetic records drawn from noisy counts: standard deviation of the share of rows below a
            threshold, on average over thresholds, or with one nominal value; None otherwise.
        pairs: the same by other column: of the share of rows in given halves of both columns, or with one nominal value
            in place of a half. Pairs that are not measured are left out: the release has these columns independent.
        code: why it is unknown, as a code that stays the same when sentences change.
    """

    column: str
    standard_deviation: float | None
    share_of_range: float | None
    records: int
    reason: Message | None = None
    share_of_rows: float | None = None
    pairs: tuple[tuple[str, float], ...] = ()
    code: str = ""

    @property
    def why(self) -> str:
        return str(self.reason or "")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "column": self.column,
            "standard_deviation": self.standard_deviation,
            "share_of_range": self.share_of_range,
            "records": self.records,
            "why": self.why,
            "code": self.code,
            "share_of_rows": self.share_of_rows,
            "pairs": dict(self.pairs),
        }


def expected_noise(
    schema: Schema | None = None,
    method: str | Method = DEFAULT_METHOD,
    epsilon: Any = None,
    k: int | None = None,
    *,
    n: int,
    columns: str | Sequence[str] | None = None,
    domains: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
    **settings: Any,
) -> tuple[ExpectedNoise, ...]:
    """Expected noise of a release, column by column, from public quantities only.

    Args:
        schema: the columns with their public domains; `domains` can stand for it or add to it.
        method: a preset.
        epsilon: the privacy budget.
        k: minimum cluster size.
        n: number of records, a public fact under the claims that need it; where it is private, the result must
            stay with the custodian.
        columns: only these, or a single one; ε is shared among them.
        domains: public domain by column, as for `shoal.protect`.
        types: type by column, as for `shoal.protect`.
        settings: of the method, such as split or noise.

    Raises:
        OptionError: a setting or a domain that a release would refuse too.

    >>> for found in expected_noise(method="laplace", epsilon=1, n=100, domains={"age": (0, 100), "rent": (0, 2000)}):
    ...     print(found.column, round(found.standard_deviation), round(found.share_of_range, 3))
    age 283 2.828
    rent 5657 2.828
    >>> (found,) = expected_noise(epsilon=1, n=10_000, domains={"age": (0, 100)})
    >>> found.column, round(found.share_of_rows, 4)
    ('age', 0.0006)
    """
    settled = configured(method, epsilon=epsilon, k=k, **settings)
    if schema is not None and schema.declared.unit is not None:
        settled = settled.for_units(schema.declared.unit.unit_rows)
    described = public_description(settled, schema, as_names(columns), domains, n, types)
    settled.allow_noise(len(described.columns))
    check_k(settled.size, n)
    if not settled.expects_shares and settled.expected(described, None).unknown:
        return noise_of(settled, described, None)
    settled, _ = settled.settle(described)
    return noise_of(settled, described, settled.plan(described))


def noise_of(settled: Method, described: Described, plan: Plan | None) -> tuple[ExpectedNoise, ...]:
    """The noise of a prepared method; no record is read."""
    expected = settled.expected(described, plan)
    if expected.shares is not None:
        return _of_shares(described, expected.shares)
    facts = {"method": settled.name, **expected.facts}
    found = []
    for name in described.columns:
        own = expected.unknown or ("name-drawn" if name in described.nominal else "")
        deviation = None if own else expected.deviations.get(name)
        width = float(described.lattices[name].width)
        share = None if deviation is None else deviation / width
        reason = Message(_UNKNOWN.get(own, own), facts) if own else None
        found.append(ExpectedNoise(name, deviation, share, settled.size, reason, code=own))
    return tuple(found)


def expected_error(
    settled: Method, described: Described, plan: Plan, rows: int | None = None, *, inside: bool = False
) -> dict[str, Any]:
    """The expected error as a statement holds it, from public quantities alone.

    Args:
        settled: the prepared method.
        described: the table; its number of rows is used where the adjacency makes it public.
        plan: of the budget.
        rows: the number of rows that were released, where they are drawn from a noisy count; None before.
        inside: use the table's own number of rows, whatever the adjacency: for the custodian only.
    """
    by_rows = settled.expects_shares
    known = described.n
    rows_are = "public"
    if settled.adjacency.hides_size:
        known = settled.rows or rows or (described.n if inside else 0)
        rows_are = "declared" if settled.rows else "released" if rows else "private"
    why = "domain-private" if _private(described) else "rows-private" if by_rows and not known else ""
    if why and (by_rows or settled.expected(described, None).unknown != NO_NOISE):
        unknown = {"standard_deviation": None, "share_of_range": None, "share_of_rows": None, "why": why}
        columns = {name: dict(unknown) for name in described.columns}
        return {"rows": None, "rows_are": "", "columns": columns, "relations": None}
    counted = replace(described, kept=_counted_rows(known)) if by_rows else described
    noise = noise_of(settled, counted, plan)
    return {
        "rows": known if by_rows else None,
        "rows_are": rows_are if by_rows else "",
        "columns": {
            found.column: {
                "standard_deviation": _rounded(found.standard_deviation),
                "share_of_range": _rounded(found.share_of_range),
                "share_of_rows": _rounded(found.share_of_rows),
                "why": found.code,
            }
            for found in noise
        },
        "relations": _relations(noise) if by_rows else None,
    }


def _private(described: Described) -> bool:
    """Whether a domain or a step was taken from the records, which makes the noise data-dependent."""
    provenance = described.provenance
    taken = any(TAKEN_FROM_DATA in (facts["step"], facts["type"]) for facts in provenance.domains.values())
    return taken or bool(provenance.private_domains)


def _relations(noise: Sequence[ExpectedNoise]) -> dict[str, Any]:
    """How many of the pairs of columns are measured, and the standard errors of their joint shares of rows."""
    telling = sum(1 for found in noise if found.share_of_rows)
    errors = [error for found in noise for _, error in found.pairs]
    return {
        "of": telling * (telling - 1) // 2,
        "measured": len(errors) // 2,
        "smallest": _rounded(min(errors, default=None)),
        "largest": _rounded(max(errors, default=None)),
    }


def _rounded(value: float | None) -> float | None:
    """Round to four digits: more are not significant."""
    return None if value is None else float(f"{value:.4g}")


def _counted_rows(n: int) -> NDArray[np.int64]:
    """Rows that are only counted, never read."""
    return np.broadcast_to(np.int64(0), (n,))


def _of_shares(described: Described, noise: ShareNoise) -> tuple[ExpectedNoise, ...]:
    others: dict[str, list[tuple[str, float]]] = {name: [] for name in described.columns}
    for (first, second), found in noise.pairs.items():
        # measurements besides those of single columns are not included
        if first in others and second in others:
            others[first].append((second, found))
            others[second].append((first, found))
    derived = () if described.rules is None else described.rules.unmeasured
    return tuple(
        ExpectedNoise(name, None, None, 1, Message("column-derived"), code="column-derived")
        if name in derived
        else ExpectedNoise(name, None, None, 1, share_of_rows=noise.alone[name], pairs=tuple(others[name]))
        for name in described.columns
    )


def rule_effects(method: Method, described: Described, plan: Plan) -> tuple[Message, ...]:
    """What the rules of the schema change, from public quantities alone: which pairs of columns are bounded, which
    columns are not measured, and what the others gain."""
    book = described.rules
    if not book or not method.keeps_rules:
        return ()
    found = []
    for number, rule in book.numbered:
        if isinstance(rule.meaning, Derived):
            column, parts = rule.meaning.column, rule.meaning.parts
            found.append(Message.of("rule-computes", number=number, column=column, parts=parts))
        else:
            found.append(Message.of("rule-bounds", number=number, rule=rule.words, columns=rule.named))
    free = replace(described, rules=None)
    without = method.plan(free)
    if book.unmeasured:
        found.append(
            Message.of(
                "rules-free-budget",
                columns=book.unmeasured,
                without=len(described.columns),
                measured=len(described.columns) - len(book.unmeasured),
            )
        )
    if method.expects_shares:
        now, before = (
            {one.column: one.share_of_rows for one in noise_of(method, table, own) if one.share_of_rows}
            for table, own in ((described, plan), (free, without))
        )
        for name, own in now.items():
            if name not in book.fields:
                found.append(Message.of("rule-gain", column=name, before=before[name], now=own))
    return tuple(found)


# bounds that are compared with the chosen one
_BOUNDS = (1, 2, 3, 5, 10, 20, 30, 50, 100)


@dataclass(frozen=True, slots=True)
class BoundForecast:
    """What another bound on the rows of a unit would mean, from public quantities.

    Attributes:
        rows: the most rows of a unit that take part.
        share_of_rows: the largest standard error of a column's share of rows, if as many rows take part as are declared
            or take part now.
        least_kept: the smallest share of the rows that would take part; None where no largest number is declared.
    """

    rows: int
    share_of_rows: float
    least_kept: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"rows": self.rows, "share_of_rows": self.share_of_rows, "least_kept": self.least_kept}


def noise_by_bound(method: Method, described: Described) -> tuple[BoundForecast, ...]:
    """The expected noise for several bounds on the rows of a unit; empty where the rows of a unit cannot be bounded.

    A unit with c of at most m rows keeps min(c, r) of them, at least the share r/m: so does the table if m is declared.
    """
    unit = None if described.schema is None else described.schema.unit
    if unit is None or not method.adjacency.hides_size or not method.expects_shares:
        return ()
    found = []
    counted = replace(described, kept=_counted_rows(method.rows or described.n))
    for rows in sorted({*_BOUNDS, described.provenance.rows_per_unit}):
        if rows > (unit.max_rows or _BOUNDS[-1]):
            continue
        try:
            bounded = method.for_units(rows)
            noise = noise_of(bounded, counted, bounded.plan(counted))
        except ShoalError:
            # ε is too small for so many rows
            break
        worst = max((one.share_of_rows or 0.0 for one in noise), default=0.0)
        least = None if unit.max_rows is None else rows / unit.max_rows
        found.append(BoundForecast(rows, worst, least))
    return tuple(found)


# numbers of rows of a stratum, where the sizes of strata are private
_OF_STRATA = (100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class StratumForecast:
    """The expected noise inside a stratum of a number of rows.

    Attributes:
        rows: of the stratum.
        share_of_rows: the largest standard error of a column's share of these rows.
        pairs: the same for two columns together; None where no pair is measured.
    """

    rows: int
    share_of_rows: float
    pairs: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"rows": self.rows, "share_of_rows": self.share_of_rows, "pairs": self.pairs}


def noise_by_stratum(method: Method, described: Described) -> tuple[StratumForecast, ...]:
    """The expected noise inside strata, by their number of rows; empty where strata are not measured by themselves.

    The sizes are those of the smallest, the middle and the largest stratum where they are public, and round numbers
    otherwise: nothing here depends on private sizes.
    """
    if not method.strata or method.expected(described, None).unknown != "by-stratum":
        return ()
    dividing: Any = method
    own, within = within_strata(dividing, described)
    if not own.expects_shares:
        return ()
    sizes = [*_OF_STRATA]
    if dividing.membership is not None:
        known = sorted(one.rows.size for one in declared_strata(dividing, described) if one.rows.size)
        sizes = [known[0], known[len(known) // 2], known[-1]] if known else []
    found = []
    for rows in dict.fromkeys(sizes):
        counted = replace(within, kept=_counted_rows(rows))
        try:
            noise = noise_of(own, counted, own.plan(counted))
        except ShoalError:
            # ε is too small for so few rows
            continue
        worst = max((one.share_of_rows or 0.0 for one in noise), default=0.0)
        pairs = [error for one in noise for _, error in one.pairs]
        found.append(StratumForecast(rows, worst, max(pairs, default=None)))
    return tuple(found)


def drowned(noise: Sequence[ExpectedNoise], method: Method, n: int) -> Message | None:
    """A warning where noise dominates the data, with the setting that would help; None where it does not.

    >>> found = expected_noise(method="ranking-dp", epsilon=1, k=5, n=5000, domains={"age": (0, 100)})
    >>> str(drowned(found, configured("ranking-dp", epsilon=1, k=5), 5000))
    'noise will dominate age: its standard deviation is 28% of the range; k=15 reduces it to 10%.'
    """
    if any(found.share_of_rows is not None for found in noise):
        return _drowned_shares(noise)
    worst = [found for found in noise if (found.share_of_range or 0.0) >= MOST_RANGE_ERROR]
    if not worst:
        return None
    share = max(found.share_of_range or 0.0 for found in worst)
    enough = math.ceil(method.size * share / CALM)
    larger_k = "k" in method.parameters() and enough <= n // 4
    return Message.of(
        "noise-drowns-column" if len(worst) == 1 else "noise-drowns-columns",
        columns=[found.column for found in worst],
        percent=100 * share,
        remedy=Message.of("k-calms", k=enough) if larger_k else Message("counts-instead"),
    )


def _drowned_shares(noise: Sequence[ExpectedNoise]) -> Message | None:
    """The same for synthetic records: single columns first, then the case that no pair is measured."""
    worst = [found for found in noise if (found.share_of_rows or 0.0) >= MOST_SHARE_ERROR]
    if worst:
        share = max(found.share_of_rows or 0.0 for found in worst)
        code = "noise-drowns-shares-of-column" if len(worst) == 1 else "noise-drowns-shares-of-columns"
        return Message.of(code, columns=[found.column for found in worst], percent=100 * share)
    telling = [found for found in noise if found.share_of_rows]
    if len(telling) > 1 and not any(found.pairs for found in telling):
        return Message("noise-drowns-pairs")
    return None


# The δ compared with none where none is given: usual, and far below one over the number of rows.
_USUAL_DELTA = Fraction(1, 10**6)
# A δ is worth its weaker guarantee where it reduces errors to this part.
_WORTH_A_DELTA = 2 / 3


@dataclass(frozen=True, slots=True)
class ErrorOfClaim:
    """The expected error of synthetic records under one claim: standard errors of shares of the rows.

    Attributes:
        delta: of the claim; 0 for pure differential privacy.
        share_of_rows: of single columns, on average.
        joint: of pairs of columns, on average over those that are measured; None where none is.
        pairs: number of measured pairs.
    """

    delta: Fraction
    share_of_rows: float
    joint: float | None
    pairs: int

    @property
    def words(self) -> Message:
        code = "claim-error-of-columns" if self.joint is None else "claim-error"
        joint = None if self.joint is None else 100 * self.joint
        return Message.of(code, alone=100 * self.share_of_rows, joint=joint, pairs=self.pairs)


@dataclass(frozen=True, slots=True)
class DeltaComparison:
    """The expected error of a release without and with a δ, from public facts and the number of rows."""

    without: ErrorOfClaim
    with_delta: ErrorOfClaim

    @property
    def errors(self) -> Message:
        """Both errors, as text."""
        return Message.of(
            "errors-without-and-with-delta",
            without=self.without.words,
            delta=decimal_text(self.with_delta.delta),
            with_delta=self.with_delta.words,
        )

    @property
    def advice(self) -> Message:
        """Whether the δ is worth its weaker guarantee."""
        pure, other = self.without, self.with_delta
        delta = decimal_text(other.delta)
        if other.pairs > pure.pairs:
            return Message.of("delta-measures-pairs", delta=delta, pairs=other.pairs, fewer=pure.pairs)
        before, after = pure.share_of_rows, other.share_of_rows
        if pure.joint is not None and other.joint is not None:
            before, after = pure.joint, other.joint
        if after > _WORTH_A_DELTA * before:
            return Message("delta-gains-little")
        return Message.of("delta-reduces-errors", delta=delta, percent=100 * (1 - after / before))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **{
                name: {
                    "delta": decimal_text(one.delta),
                    "share_of_rows": _rounded(one.share_of_rows),
                    "joint": _rounded(one.joint),
                    "pairs": one.pairs,
                }
                for name, one in (("without", self.without), ("with_delta", self.with_delta))
            },
            "advice": self.advice.code,
        }


def compared_with_delta(method: Method, described: Described) -> DeltaComparison | None:
    """The expected error without and with a δ: the given one, or the usual one; no record is read.

    None for methods that take no δ, and where all columns have one value only.
    """
    if "delta" not in method.parameters() or not method.expects_shares:
        return None
    found = []
    for delta in (Fraction(0), method.delta or _USUAL_DELTA):
        asked: dict[str, Any] = {"delta": delta}
        shares = replace(method, **asked).expected(described, None).shares
        telling = [] if shares is None else [error for error in shares.alone.values() if error]
        if shares is None or not telling:
            return None
        joint = list(shares.pairs.values())
        found.append(
            ErrorOfClaim(
                delta,
                math.fsum(telling) / len(telling),
                math.fsum(joint) / len(joint) if joint else None,
                len(joint),
            )
        )
    return DeltaComparison(*found)


# messages with these codes, which statements have too, concern one method
_UNKNOWN: Mapping[str, str] = {
    NO_NOISE: "method-adds-no-noise",
    "drawn-anew": "method-draws-anew",
    "by-stratum": "method-by-stratum",
    "by-units": "method-by-units",
    "own-noise": "composition-has-own-noise",
    "passes-matrix": "method-passes-matrix",
    "follows-records": "method-follows-records",
    "variance-unknown": "variance-of-noise-unknown",
    "name-drawn": "name-drawn-for-every-cluster",
}


def public_description(
    method: Method,
    schema: Schema | None,
    columns: Sequence[str] | None,
    domains: Mapping[str, Any] | None,
    n: int,
    types: Mapping[str, str] | None = None,
) -> Described:
    """The declared columns and a number of rows: all that a plan uses."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise OptionError("n-whole-number-least-1", option="n", found=n)
    given, typed = domains or {}, types or {}
    # the form of a domain, a range or a list of values, determines the kind
    declared = schema or Schema(
        tuple(Attribute.of_domain(name, domain, typed.get(name)) for name, domain in given.items())
    )
    for name in (*given, *typed, *(columns or ())):
        if name not in declared:
            raise OptionError("column-not-described-schema", column=name, hint=closest(name, declared.names))
    problems = Problems()
    attributes, lattices = [], {}
    known = declared.declared.with_domains(given).with_types(typed).stepped
    for attribute in (one.with_declared_type() for one in known.attributes):
        taken = not attribute.dropped and attribute.kind in method.kinds
        if attribute.name not in columns if columns is not None else not taken:
            continue
        with problems.collected():
            lattices[attribute.name] = attribute.lattice(integer=attribute.type == "integer")
            attributes.append(attribute)
    problems.raise_all()
    if not attributes:
        raise OptionError("no-column-left-method-takes")
    import pyarrow as pa

    one = read(pa.table({name: [0] for name in lattices}))
    integers = [one.name for one in attributes if one.type == "integer"]
    book = applied_rules(known.rules, attributes, lattices, integers) if known.rules else None
    return Described(
        one, tuple(attributes), lattices, Provenance(), _counted_rows(n), (), "error", rules=book
    )


_FEW_ROWS = 10
# expected number of people for whom the guarantee fails, above which the custodian is warned
_MOST_FAILURES = Fraction(1, 10)
# a factor of e^20 is about five hundred million
_MUCH_EPSILON = 20
# number of columns that share ε, and the share above which noise dominates what most columns show
_MANY_COLUMNS, _LITTLE_EPSILON = 20, 0.05


def advice(method: Method, described: Described, plan: Plan) -> tuple[Message, ...]:
    """Warnings about tables and budgets that leave little protection or little utility."""
    return tuple(
        said
        for said in (
            _starved(method, plan),
            _risky(method, described),
            _about_rows(described),
            _about_epsilon(method),
            _about_columns(method, described, plan),
            *_about_formulas(method, described),
        )
        if said is not None
    )


def _starved(method: Method, plan: Plan) -> Message | None:
    """A warning for attributes that receive almost nothing of the budget in an uneven split."""
    if method.epsilon is None or not method.pure or not plan.shares:
        return None
    fair = method.epsilon / len(plan.shares)
    poor = [name for name, share in plan.shares.items() if share * 20 < fair]
    if not poor:
        return None
    split = method.settings().get("split", "equal")
    if isinstance(split, str):
        return Message.of("split-starves", split=split, columns=poor)
    return Message.of("weights-starve", columns=poor)


def _risky(method: Method, described: Described) -> Message | None:
    """A warning for a δ that is likely to expose somebody's record; not a fact about the records."""
    if method.delta * described.n <= _MOST_FAILURES:
        return None
    return Message.of("delta-too-large", delta=decimal_text(method.delta), most=decimal_text(_MOST_FAILURES))


def _about_rows(described: Described) -> Message | None:
    if described.n >= _FEW_ROWS:
        return None
    return Message(
        {0: "table-of-no-rows", 1: "table-of-one-row"}.get(described.n, "table-of-few-rows"),
        {"rows": described.n},
    )


def _about_epsilon(method: Method) -> Message | None:
    if method.unit_epsilon is None or method.unit_epsilon < _MUCH_EPSILON:
        return None
    return Message.of("epsilon-promises-nothing", epsilon=decimal_text(method.unit_epsilon))


def _about_columns(method: Method, described: Described, plan: Plan) -> Message | None:
    number = len(described.columns)
    if method.epsilon is None or number < _MANY_COLUMNS or not plan.shares:
        return None
    share = float(method.epsilon) / number
    if share >= _LITTLE_EPSILON:
        return None
    epsilon = exact_text(method.epsilon)
    return Message.of("epsilon-shared-by-many", epsilon=epsilon, columns=number, share=share)


def _about_formulas(method: Method, described: Described) -> list[Message]:
    found = []
    conventions = described.table.conventions
    for attribute in described.attributes:
        names = [
            attribute.name,
            *map(str, releasable(described.table, attribute, generalise=method.output.generalise) or ()),
        ]
        formula = first_formula(names)
        if formula is not None and not conventions.spreadsheet_safe:
            found.append(Message.of("formula-released", column=attribute.name, formula=formula[:40]))
    return found
