"""Questions to the server: the answers, their cost, and who can see what."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from shoal.query.client import RefusedError
from shoal.survey import survey

MEAN = {"kind": "mean", "column": "income", "epsilon": "0.5"}
PEOPLE = survey(300)


def test_an_answer_carries_value_statement_and_receipt(server: Any) -> None:
    with server.client() as client:
        reply = client.ask("survey", MEAN)
    truth = sum(PEOPLE["income"].to_pylist()) / 300
    # 300,000 / 300 / 0.5 = 2,000 is the scale of the noise: far more than 40 scales never happens
    assert abs(reply.value - truth) < 80_000
    assert reply.cost == Fraction(1, 2)
    assert reply.statement["model"] == "dp"
    assert reply.statement["epsilon"] == "1/2"
    assert reply.statement["publishable"] is True
    assert reply.statement["neighbours"] == (
        "replace-one: adjacent data sets differ in one record, and the number of records is public"
    )
    assert reply.error["interval_95"] > 0
    assert reply.receipt["charge"] == 2
    assert server.place.spent() == Fraction(1, 2)


def test_noise_is_fresh_for_every_question(server: Any) -> None:
    question = {"kind": "sum", "column": "income", "epsilon": "0.1"}
    with server.client() as client:
        values = {client.ask("survey", question).value for _ in range(6)}
    assert len(values) == 6


def test_the_budget_ends_with_a_refusal_that_says_what_is_missing(server: Any) -> None:
    with server.client() as client:
        for _ in range(3):
            client.ask("survey", MEAN)
        with pytest.raises(RefusedError, match=r"Requested 0\.75, remaining 0\.5, missing 0\.25") as refused:
            client.ask("survey", MEAN | {"epsilon": "0.75"})
        assert refused.value.code == "overdrawn"
        assert refused.value.status == 403
        client.ask("survey", MEAN)
        with pytest.raises(RefusedError, match="remaining 0, missing"):
            client.ask("survey", MEAN)
    assert server.place.spent() == 2


def test_a_preview_is_free_and_exact(server: Any) -> None:
    with server.client() as client:
        seen = client.preview("survey", MEAN)
        assert (seen["allowed"], seen["adds"]) == (True, "1/2")
        assert seen["preview"]["cost"] == "1/2"
        assert "value" not in seen["preview"]
        client.ask("survey", MEAN | {"epsilon": "1.75"})
        seen = client.preview("survey", MEAN)
        assert (seen["allowed"], seen["adds"]) == (False, None)
    assert server.place.spent() == Fraction(7, 4)


def test_a_description_holds_public_facts_only(
    server: Any, tmp_path: Path, build: Callable[..., Any], serve: Callable[..., Any]
) -> None:
    with server.client() as client:
        assert client.datasets() == ["survey"]
        described = client.describe("survey")
    assert described["description"] == "A small survey."
    assert described["facts"]["rows"] == 300
    columns = {column["name"]: column for column in described["facts"]["columns"]}
    assert columns["income"]["hi"] == "300000"
    assert columns["person_id"] == {"name": "person_id", "kind": "nominal", "role": "identifier"}
    # other people, the same description
    with serve(build(tmp_path / "other", seed=1)) as other, other.client() as client:
        assert client.describe("survey") == described


def test_under_add_remove_the_number_of_records_stays_inside(
    tmp_path: Path, build: Callable[..., Any], serve: Callable[..., Any]
) -> None:
    with serve(build(tmp_path / "s", neighbours="add-remove")) as server, server.client() as client:
        described = client.describe("survey")
        assert described["facts"]["rows"] is None
        assert "300" not in json.dumps(described).replace("300000", "")
        reply = client.ask("survey", {"kind": "count", "epsilon": "0.5"})
        assert reply.cost == Fraction(1, 2)
        assert "private" in reply.statement["neighbours"]


def test_analysts_see_their_own_answers_only(server: Any) -> None:
    with server.client("ada") as ada, server.client("ben") as ben:
        first = ada.ask("survey", MEAN, key="first")
        second = ben.ask("survey", {"kind": "count", "epsilon": "0.5", "where": _at_least(65)})
        (listed,) = ada.answers("survey")
        assert listed["answer"]["value"] == first.value
        assert listed["key"] == "first"
        assert listed["question"]["kind"] == "mean"
        assert listed["head"] == first.receipt["head"]
        (other,) = ben.answers("survey")
        assert other["answer"]["value"] == second.value


def test_long_lists_come_in_pages(server: Any) -> None:
    with server.client() as client:
        for _ in range(7):
            client.ask("survey", MEAN | {"epsilon": "0.01"})
        for at_once in (1, 3, 7, 100):
            numbers = [entry["charge"] for entry in client.answers("survey", at_once=at_once)]
            assert len(set(numbers)) == 7
            assert numbers == sorted(numbers)
        page = server.raw("GET", "/v1/datasets/survey/answers?limit=3&after=4").json()
        assert len(page["answers"]) == 3
        assert page["next"] == page["answers"][-1]["charge"]


def test_a_budget_is_shown_for_all_and_for_oneself(
    tmp_path: Path, build: Callable[..., Any], serve: Callable[..., Any]
) -> None:
    terms = {"every_analyst": Fraction(1), "analysts": {"ben": Fraction(3, 4)}}
    with serve(build(tmp_path / "s", **terms)) as server, server.client() as ada, server.client("ben") as ben:
        ada.ask("survey", MEAN)
        ben.ask("survey", MEAN)
        assert ada.budget("survey") == {
            "dataset": "survey",
            "neighbours": "replace-one",
            "ceiling": "2/1",
            "spent": "1/1",
            "remaining": "1/1",
            "delta_ceiling": "0/1",
            "delta_spent": "0/1",
            "yours": {
                "ceiling": "1/1",
                "spent": "1/2",
                "remaining": "1/2",
                "decimal": {"ceiling": "1", "spent": "0.5", "remaining": "0.5"},
            },
            "decimal": {
                "ceiling": "2",
                "spent": "1",
                "remaining": "1",
                "delta_ceiling": "0",
                "delta_spent": "0",
            },
        }
        own = ben.budget("survey")["yours"]
        assert own.pop("decimal") == {"ceiling": "0.75", "spent": "0.5", "remaining": "0.25"}
        assert own == {"ceiling": "3/4", "spent": "1/2", "remaining": "1/4"}
        with pytest.raises(RefusedError, match="budget of the analyst"):
            ben.ask("survey", MEAN)


def test_a_holder_sees_what_everybody_spent(server: Any) -> None:
    with server.client() as client:
        reply = client.ask("survey", MEAN)
        with pytest.raises(RefusedError) as refused:
            client.ledger("survey")
        assert refused.value.code == "not_allowed"
    with server.client("hilda") as holder:
        seen = holder.ledger("survey")
        assert seen["analysts"] == {"ada": "1/2"}
        assert seen["head"] == reply.receipt["head"]
        assert seen["unanswered"] == 0


def test_questions_about_disjoint_individuals_cost_the_maximum(server: Any) -> None:
    """The thesis, Proposition 4; under replace-one a question about one person costs twice its ε."""

    def about(person: str, epsilon: str) -> dict[str, Any]:
        key = {"column": "person_id", "value": person}
        return {"kind": "individual", "epsilon": epsilon, "key": key, "column": "hours per week"}

    with server.client() as client:
        added = [
            client.ask("survey", about(person, epsilon)).cost
            for person, epsilon in (
                ("P000001", "0.25"),
                ("P000002", "0.25"),
                ("P000002", "0.5"),
                ("P000003", "0.75"),
            )
        ]
    assert added == [Fraction(1, 2), 0, 1, 0]
    assert server.place.spent() == Fraction(3, 2)


def test_protocol_1_prices_disjoint_counts_together(server: Any) -> None:
    """Counts of groups that do not overlap: a replaced record moves two of them at most, however many are asked."""
    with server.client() as client:
        added = []
        for lo in range(20, 80, 10):
            where = {"column": "age", "op": "between", "lo": lo, "hi": lo + 9}
            question = {"kind": "protocol-1", "scale": "4", "query": {"kind": "count", "where": where}}
            added.append(client.ask("survey", question).cost)
    assert added == [Fraction(1, 4), Fraction(1, 4), 0, 0, 0, 0]


def test_protocol_2_charges_the_epsilon_it_names(server: Any) -> None:
    inner = {"kind": "statistical", "statistic": {"kind": "mean", "column": "age"}}
    with server.client() as client:
        reply = client.ask("survey", {"kind": "protocol-2", "epsilon": "0.5", "query": inner})
    assert reply.cost == Fraction(1, 2)
    assert 18 <= float(reply.value) <= 99


def test_a_question_that_takes_long_to_read_goes_to_a_thread(server: Any) -> None:
    prior = {"kind": "normal", "mean": "40", "sd": "10"}
    key = {"column": "person_id", "value": "P000001"}
    asked = {"kind": "individual", "epsilon": "0.1", "key": key, "column": "hours per week", "prior": prior}
    where = {"column": "age", "op": "in", "values": list(range(18, 99))}
    with server.client() as client:
        assert client.ask("survey", asked).cost == Fraction(1, 5)
        assert (
            client.ask("survey", {"kind": "count", "epsilon": "0.1", "where": {"or": [where] * 8}}).cost > 0
        )


def test_a_histogram_keeps_the_order_of_its_cells(server: Any) -> None:
    with server.client() as client:
        reply = client.ask("survey", {"kind": "histogram", "column": "education", "epsilon": "1"})
    assert list(reply.value) == [
        "primary",
        "lower secondary",
        "upper secondary",
        "bachelor",
        "master or higher",
    ]


def test_several_questions_in_one_request_are_charged_one_by_one(server: Any) -> None:
    asked = [MEAN, {"kind": "count"}, MEAN | {"epsilon": "1"}, MEAN | {"epsilon": "1"}, MEAN]
    with server.client() as client:
        results = client.ask_many("survey", asked, key="all")
        assert [getattr(result, "cost", None) or result.code for result in results] == [
            Fraction(1, 2),
            "bad_question",
            1,
            "overdrawn",
            Fraction(1, 2),
        ]
        assert server.place.spent() == 2
        # under the same key, each of them is the same question as before
        again = client.ask_many("survey", asked, key="all")
        assert [getattr(result, "value", None) for result in again] == [
            getattr(result, "value", None) for result in results
        ]
        changed = client.ask_many("survey", [asked[2], *asked[1:]], key="all")
        assert changed[0].code == "key_reused"
        assert changed[4].value == results[4].value
    assert server.place.spent() == 2


@pytest.mark.parametrize(
    "body", [{}, {"questions": []}, {"questions": [MEAN] * 101}, {"questions": MEAN}, [MEAN]]
)
def test_a_list_that_is_none_is_refused(server: Any, body: Any) -> None:
    assert server.raw("POST", "/v1/datasets/survey/batches", json=body).status_code in (400, 422)
    assert server.place.spent() == 0


def test_odd_members_of_a_list_are_refused_by_themselves(server: Any) -> None:
    reply = server.raw("POST", "/v1/datasets/survey/batches", json={"questions": [[1], 3, None, MEAN]})
    assert [result.get("error") for result in reply.json()["results"]] == ["bad_question"] * 3 + [None]
    assert server.place.spent() == Fraction(1, 2)


def test_delta_needs_a_ceiling_of_its_own(
    tmp_path: Path, build: Callable[..., Any], serve: Callable[..., Any]
) -> None:
    inner = {"kind": "statistical", "statistic": {"kind": "mean", "column": "age"}, "epsilon": "0.5"}
    with serve(build(tmp_path / "a")) as server, server.client() as client:
        with pytest.raises(RefusedError) as refused:
            client.ask("survey", inner | {"delta": "1e-6"})
        assert (refused.value.code, refused.value.detail["what"]) == ("overdrawn", "delta")
    with (
        serve(build(tmp_path / "b", delta_ceiling=Fraction(1, 10**6))) as server,
        server.client() as client,
    ):
        client.ask("survey", inner | {"delta": "1e-6"})
        assert client.budget("survey")["delta_spent"] == "1/1000000"


def _at_least(age: int) -> dict[str, Any]:
    return {"column": "age", "op": ">=", "value": age}
