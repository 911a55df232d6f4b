"""Why a setting is recommended: the rows of a comparison and the best one come in, sentences leave."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.evaluation.measures import ranked_by
from shoal.method.models import MODELS
from shoal.method.tuned import Tuned
from shoal.tuning.choose import Row, chance

# stronger claims first; each is weaker than those before it
_STRENGTH = ("dp", "approximate-dp", "dp-given-partition", "idp-given-partition")
# percentage of linked rows, far above guessing, that calls for a word
_NOTABLE = 5.0
# how many other methods are named
_NAMED = 3


def reasons(
    rows: Sequence[Row], best: Row | None, utility: str, max_risk: float | None, n: int, tuned: Tuned | None
) -> str:
    """What the choice beats and by how much, its risk and its claim, and what choosing on the records means."""
    compared = [row for row in rows if row.apart is None]
    if best is None or best.loss is None:
        return _nothing(compared, max_risk)
    limit = "" if max_risk is None else f" whose linkage risk is at most {max_risk:g}%"
    certainty = "in closed form" if best.loss.exact else "mean over the seeds with its 95% interval"
    found = [
        f"{best.setting} has the least loss of {_counted(len(compared))}{limit}: {ranked_by()[utility]} "
        f"{best.loss}, {certainty}.",
        *_beaten(compared, best),
    ]
    if best.risk is not None and best.risk.exact:
        found.append(
            f"Its rows belong to nobody: linking them to a record is guessing, right for {chance(n):.2g}%."
        )
    elif best.risk is not None:
        found.append(
            f"Of its rows an intruder links to their own record, in %, {best.risk}; guessing links {chance(n):.2g}."
        )
        if max_risk is None and best.risk.mean > max(_NOTABLE, 10 * chance(n)):
            from shoal.evaluation.verdict import MOST_LINKED

            found.append(
                "If that is too much, set a limit (max_risk=); "
                f"above {100 * MOST_LINKED:g} the measured risk counts as high."
            )
    found += _claims(compared, best)
    facts = MODELS[best.model]
    if tuned is not None and facts.guarantee and not facts.of_the_table:
        found.append(
            f"The choice of {tuned.words} looked at the records: a release of the same records with this setting does "
            "not keep its promise as stated."
        )
    return " ".join(found)


def _counted(settings: int) -> str:
    return "1 setting" if settings == 1 else f"{settings} settings"


def _nothing(compared: Sequence[Row], max_risk: float | None) -> str:
    if not compared or max_risk is None:
        return "No setting could be compared."
    known = [row for row in compared if row.risk is not None]
    least = min(known, key=lambda row: row.risk.mean if row.risk else 0.0)
    return (
        f"No setting has a linkage risk that is surely at most {max_risk:g}%. The least risk is that of "
        f"{least.setting}, in %: {least.risk}."
    )


def _beaten(compared: Sequence[Row], best: Row) -> list[str]:
    """The best settings of the next methods, or the next setting if there is one method only."""
    others: dict[str, Row] = {}
    for row in compared:
        if row.setting != best.setting and row.setting.method != best.setting.method:
            others.setdefault(row.setting.method, row)
    rivals = list(others.values())[:_NAMED] or [row for row in compared if row is not best][:1]
    assert best.loss is not None
    words = []
    for row in rivals:
        assert row.loss is not None
        gap = row.loss.mean / best.loss.mean - 1 if best.loss.mean > 0 else 0.0
        clearly = best.loss.at_most < row.loss.at_least
        if gap < 0:
            words.append(f"{row.setting} loses less, {row.loss}, but its risk is above the limit")
        else:
            sure = "" if clearly else ", which the seeds do not tell apart"
            words.append(f"{row.setting} loses {row.loss}, {_more(gap)}{sure}")
    return [f"Of the others, {'; '.join(words)}."] if words else []


def _more(gap: float) -> str:
    return f"{gap:.0%} more" if gap < 2 else f"{gap + 1:.3g} times as much"


def _claims(compared: Sequence[Row], best: Row) -> list[str]:
    """Claims differ: the best setting under each stronger one."""
    found = [f"Its claim is {best.model}."]
    stronger = _STRENGTH[: _STRENGTH.index(best.model)] if best.model in _STRENGTH else ()
    for model in stronger:
        first = next((row for row in compared if row.model == model), None)
        if first is not None:
            found.append(f"The best with the stronger claim {model} is {first.setting}: {first.loss}.")
    return found
