"""Why a setting is recommended: the rows of a comparison and the best one come in, messages leave."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.evaluation.measures import ranked_by
from shoal.method.models import MODELS
from shoal.method.tuned import Tuned
from shoal.text import Message
from shoal.tuning.choose import Row, chance

# stronger claims first; each is weaker than those before it
_STRENGTH = ("dp", "approximate-dp", "dp-given-partition", "idp-given-partition")
# percentage of linked rows, far above guessing, that calls for a word
_NOTABLE = 5.0
# how many other methods are named
_NAMED = 3


def reasons(
    rows: Sequence[Row], best: Row | None, utility: str, max_risk: float | None, n: int, tuned: Tuned | None
) -> tuple[Message, ...]:
    """What the choice beats and by how much, its risk and its claim, and what choosing on the records means."""
    compared = [row for row in rows if row.apart is None]
    if best is None or best.loss is None:
        return (_nothing(compared, max_risk),)
    found = [
        Message.of(
            "least-loss" if max_risk is None else "least-loss-within-risk",
            setting=best.setting,
            compared=len(compared),
            max_risk=max_risk,
            measure=ranked_by()[utility],
            loss=best.loss,
            certainty=Message.of("in-closed-form" if best.loss.exact else "mean-over-seeds"),
        ),
        *_beaten(compared, best),
    ]
    if best.risk is not None and best.risk.exact:
        found.append(Message.of("links-by-guessing", chance=chance(n)))
    elif best.risk is not None:
        found.append(Message.of("links-own-record", risk=best.risk, chance=chance(n)))
        if max_risk is None and best.risk.mean > max(_NOTABLE, 10 * chance(n)):
            from shoal.evaluation.verdict import MOST_LINKED

            found.append(Message.of("limit-the-risk", high=100 * MOST_LINKED))
    found += _claims(compared, best)
    facts = MODELS[best.model]
    if tuned is not None and facts.guarantee and not facts.of_the_table:
        found.append(Message.of("choice-looked-at-records", what=tuned.what))
    return tuple(found)


def _nothing(compared: Sequence[Row], max_risk: float | None) -> Message:
    if not compared or max_risk is None:
        return Message.of("no-setting-compared")
    known = [row for row in compared if row.risk is not None]
    least = min(known, key=lambda row: row.risk.mean if row.risk else 0.0)
    return Message.of("no-setting-within-risk", max_risk=max_risk, setting=least.setting, risk=least.risk)


def _beaten(compared: Sequence[Row], best: Row) -> list[Message]:
    """The best settings of the next methods, or the next setting if there is one method only."""
    others: dict[str, Row] = {}
    for row in compared:
        if row.setting != best.setting and row.setting.method != best.setting.method:
            others.setdefault(row.setting.method, row)
    rivals = list(others.values())[:_NAMED] or [row for row in compared if row is not best][:1]
    return [Message.of("beaten", rivals=tuple(_rival(row, best) for row in rivals))] if rivals else []


def _rival(row: Row, best: Row) -> Message:
    assert row.loss is not None
    assert best.loss is not None
    gap = row.loss.mean / best.loss.mean - 1 if best.loss.mean > 0 else 0.0
    if gap < 0:
        return Message.of("rival-above-limit", setting=row.setting, loss=row.loss)
    more = Message.of("share-more", gap=gap) if gap < 2 else Message.of("times-as-much", times=gap + 1)
    clearly = best.loss.at_most < row.loss.at_least
    code = "rival-loses" if clearly else "rival-as-uncertain"
    return Message.of(code, setting=row.setting, loss=row.loss, more=more)


def _claims(compared: Sequence[Row], best: Row) -> list[Message]:
    """Claims differ: the best setting under each stronger one."""
    found = [Message.of("its-claim", model=best.model)]
    stronger = _STRENGTH[: _STRENGTH.index(best.model)] if best.model in _STRENGTH else ()
    for model in stronger:
        first = next((row for row in compared if row.model == model), None)
        if first is not None:
            found.append(Message.of("stronger-claim", model=model, setting=first.setting, loss=first.loss))
    return found
