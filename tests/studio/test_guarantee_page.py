"""The guarantee page: cards from models, controls from settings, texts from statements, and the cost of views."""

from __future__ import annotations

import json
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.evaluation.assessment import verdict
from shoal.extend import register_method
from shoal.inference import main_numbers
from shoal.io import read
from shoal.journal import Journal
from shoal.mechanisms.parameter_fields import shared
from shoal.mechanisms.registry import load_recipe, method_class, names
from shoal.privacy import three_parts
from shoal.privacy.verdict import MODELS
from shoal.release import compared_with_delta, prepare
from shoal.studio.facts import exposed, pairs, person
from shoal.studio.guarantee import BY_NAME, CARDS, offers
from shoal.studio.preview import capital
from shoal.studio.runs import StudioRun, buy, compare
from shoal.studio.starting import heard
from shoal.text import Message
from tests.support.registries import forgotten_afterwards

from .studio_client import Tab, finished, job_of


def test_every_model_has_a_card_and_every_method_is_offered_somewhere() -> None:
    assert {model for card in CARDS for model in card.models} == set(MODELS)
    for columns in (1, 4):
        found = {offer.name for card in CARDS for offer in offers(card, columns, 0, 1000)}
        assert found == set(names())


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_what_a_card_offers_has_its_claim(card: object, settled: Tab) -> None:
    assert card in CARDS
    settled.guarantee("card", card.name)
    ahead = settled.session.look_ahead()
    assert ahead.ready, ahead.problems
    assert ahead.statement["model"] in card.models
    # never more than holds: what was 50% sure may become surer
    if card.name in ("dp", "approximate-dp"):
        assert "at most 73.2%" in ahead.explained.sentence


def test_errors_without_and_with_a_delta_are_on_the_page(settled: Tab) -> None:
    settled.guarantee("card", "dp")
    settled.guarantee("method", "pairs-dp")
    compared = settled.session.look_ahead().compared
    assert compared is not None
    page = settled.post("step/guarantee")
    assert "Standard errors of shares of rows without δ" in page
    assert "This method adds no noise." not in page
    settled.guarantee("method", "laplace")
    assert settled.session.look_ahead().compared is None
    assert "Standard errors of shares of rows without" not in settled.post("step/guarantee")


def test_readers_of_synthetic_rows_get_intervals_and_are_told_why(settled: Tab) -> None:
    settled.guarantee("card", "dp")
    settled.guarantee("setting", "5", "epsilon")
    run = finished(settled.session)
    page = settled.post("step/publish")
    assert str(Message("rows-are-no-sample")) in page
    assert "shoal intervals release-A 'mean(age)'" in page
    known = main_numbers(run.bundle)
    assert [one.to_dict() for one in known] == run.facts["main_numbers"]
    assert {one.name for one in known} >= {"mean(`age`)", "mean(`income`)"}
    assert all(one.words_of(flag) in page for one in known for flag in one.flags)
    for one in known:
        assert f"<td>{one.estimate:.4g}</td><td>{one.low:.4g} to {one.high:.4g}</td>" in page
    assert "uses no privacy budget" in page
    # averages of groups are no synthetic rows
    settled.guarantee("card", "given-partition")
    finished(settled.session)
    assert 'id="analysts"' not in settled.post("step/publish")


def listed(page: str, title: str) -> list[str]:
    """The lines below a title of the page."""
    found = re.search(rf"<summary>{title}</summary>(?:<p>[^<]*</p>)?<ul>(.*?)</ul>", page, re.DOTALL)
    return [] if found is None else re.findall(r"<li>(.*?)</li>", found[1], re.DOTALL)


def settings_of(method: str) -> list[dict[str, str]]:
    """Some settings that change what a statement says."""
    own = method_class(method).parameters()
    found: list[dict[str, str]] = [{}]
    found += [{"epsilon": "3"}] if "epsilon" in own else []
    found += [{"neighbours": "add-remove"}] if "neighbours" in own else []
    found += [{"k": "50"}] if "k" in own else []
    return found


# the methods of one paper differ in a scale only
@pytest.mark.parametrize(
    "method", [name for name in names() if not name.startswith("xm-") or name in ("xm-1", "xm-b1")]
)
def test_every_sentence_of_a_statement_is_on_the_page_and_no_other(settled: Tab, method: str) -> None:
    """At several settings: the page shows the codes of the statement that `shoal.protect` would write."""
    card = next(one for one in CARDS if method in {offer.name for offer in offers(one, 4, 1, 300)})
    settled.guarantee("card", card.name)
    settled.guarantee("method", method)
    before = settled.session.recipe
    for settings in settings_of(method):
        settled.session.settle(before)
        for name, value in settings.items():
            settled.guarantee("setting", value, name)
        page = settled.post("step/guarantee")
        request, uses = settled.session.recipe.request, settled.session.uses
        problems = settled.session.look_ahead().problems
        if problems:
            with pytest.raises(shoal.ShoalError) as caught:
                prepare(settled.session.sheet, **request)
            assert [one.code for one in problems] == [one.code for one in caught.value.problems]
            continue
        prepared = uses.stated(prepare(settled.session.sheet, **request))
        statement = prepared.foreseen
        terms = statement.to_dict()["terms"]
        for part, title in (("conditions", "Conditions"), ("not_promised", "What is not guaranteed")):
            assert listed(page, title) == [str(Message(one["code"], one["facts"])) for one in terms[part]]
        reasons = [one["code"] for one in statement.verdict.to_dict()["reasons"]]
        assert reasons == [one.code for one in settled.session.look_ahead().verdict.reasons]
        assert all(line in page for line in statement.verdict.limits)
        three = three_parts(statement.to_dict())
        assert listed(page, "Declared by the publisher") == [capital(line) for line in three.declared]
        assert listed(page, "Recorded") == list(three.recorded)
        for title, words in three.computed.items() if isinstance(three.computed, dict) else three.computed:
            assert f"<dt>{title}</dt><dd>{words}</dd>" in page
        assert f"<p>{statement.sentence}</p>" in page
        compared = compared_with_delta(prepared.method, prepared.described)
        assert (compared is not None) == ("delta" in method_class(method).parameters())
        if compared is not None:
            assert capital(compared.errors) in page
            assert capital(compared.advice) in page


class MdavNew(shoal.MdavDP):
    """A method of tomorrow."""

    name: ClassVar[str] = "mdav-new"
    about: ClassVar[str] = "a method of tomorrow"
    k: int = shared("k", default=30)


def test_a_new_method_appears_on_the_page_by_its_class_alone(settled: Tab) -> None:
    with forgotten_afterwards():
        register_method(MdavNew, who="the tests")
        settled.guarantee("card", "given-partition")
        page = settled.post("step/guarantee")
        assert "mdav-new: a method of tomorrow" in page
        settled.guarantee("method", "mdav-new")
        assert settled.session.look_ahead().statement["method"] == "mdav-new"
        assert settled.session.recipe.settings["k"] == "30"


def test_every_option_of_a_method_is_on_the_page_with_its_sentence(settled: Tab) -> None:
    page = settled.post("step/guarantee")
    for known in shoal.MdavDP.parameters().values():
        assert known.about.format(on="on", off="off")[1:] in page


def test_a_slider_gets_back_what_depends_on_it_and_not_itself(settled: Tab) -> None:
    found = settled.post("guarantee", what="slider", name="epsilon", value="1000")
    assert settled.session.recipe.settings["epsilon"] == "10"
    assert 'data-into="#typed-epsilon"' in found
    assert 'data-into="#slider-epsilon"' not in found
    assert 'data-into="#statement"' in found
    found = settled.guarantee("typed", "0.25", "epsilon")
    assert 'data-into="#slider-epsilon"' in found
    assert 'data-into="#typed-epsilon"' not in found
    assert settled.session.look_ahead().statement["epsilon"] == 0.25


def test_noise_is_told_from_public_quantities_and_a_k_that_helps_is_a_button(settled: Tab) -> None:
    settled.guarantee("typed", "3", "k")
    ahead = settled.session.look_ahead()
    assert any(one.loud for one in ahead.noise)
    known = {
        one.column: one
        for one in shoal.expected_noise(
            settled.session.recipe.schema,
            "mdav-dp",
            "1",
            3,
            n=300,
            columns=list(settled.session.recipe.schema.names),
        )
    }
    for one in ahead.noise:
        share = known[one.column].share_of_range
        assert (one.share is None) == (share is None)
    assert ahead.fix_k is not None
    settled.guarantee("setting", str(ahead.fix_k), "k")
    assert not any(one.loud for one in settled.session.look_ahead().noise)


def test_problems_are_the_library_s_with_a_way_out(settled: Tab) -> None:
    page = settled.guarantee("typed", "301", "k")
    assert "301" in page
    assert "300" in page
    assert "Use a smaller k" in page
    settled.guarantee("setting", "30", "k")
    settled.column("income", "range", ["0", "20000"])
    page = settled.guarantee("typed", "30", "k")
    assert "Some values of column 'income' lie outside 0:20000" in page
    assert "Go to income" in page
    page = settled.post("guarantee", what="outside", value="clip")
    assert "lie outside" not in page


def test_how_many_values_lie_outside_is_told_on_request_only(settled: Tab) -> None:
    settled.column("income", "range", ["0", "20000"])
    page = settled.post("step/guarantee")
    sentence = (
        "Some values of column 'income' lie outside 0:20000: widen the domain, or clip with outside=\"clip\"."
    )
    assert sentence in page
    table = read(settled.session.source.path)
    count = int((np.asarray(table.numeric("income")) > 20_000).sum())
    assert f"{count} values" not in page
    for end in ("19999", "20001"):
        # whichever range is tried, the answer is the same
        settled.column("income", "range", ["0", end])
        assert sentence.replace("20000", end) in settled.post("step/guarantee")
        assert "values outside" not in settled.column("income", "open")
    settled.column("income", "range", ["0", "20000"])
    assert "income" not in settled.session.viewed
    page = settled.guarantee("look", "income")
    assert f"{count} values." in page
    assert "income" in settled.session.viewed


def order(page: str) -> list[str]:
    """The buttons of the page that run something, from left to right, in the panel and in the sheet of a phone."""
    return re.findall(r'data-send="run/(rehearse|release)"', page)


def test_rehearse_and_protect_stay_where_they_are(settled: Tab) -> None:
    first = settled.post("step/guarantee")
    assert order(first) == ["rehearse", "release"] * 2
    assert settled.session.rehearses_first
    finished(settled.session, "rehearse")
    after = settled.post("step/guarantee")
    assert not settled.session.rehearses_first
    assert order(after) == order(first)
    # the key that runs something runs what costs nothing, before and after
    for page in (first, after):
        assert re.findall(r'id="(\w+)" data-run', page) == ["rehearse"]
    settled.guarantee("card", "k-anonymity")
    assert order(settled.post("step/guarantee")) == order(first)
    finished(settled.session)
    settled.post("step/judge")
    assert order(settled.post("step/guarantee")) == order(first)


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ("dp", "uses <b>ε = 1</b> per row of the data set <b>people</b>."),
        ("approximate-dp", "uses <b>ε = 1, δ = "),
        ("k-anonymity", "has no ε that composes: it uses no privacy budget of the data set <b>people</b>."),
    ],
)
def test_the_real_run_is_confirmed_with_what_it_costs(
    settled: Tab, card: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr("shoal.studio.runs.start", lambda run, job, told: started.append(run.kind))
    settled.guarantee("card", card)
    page = settled.post("run/release")
    assert words in page
    assert started == []
    settled.run()
    assert started == ["release"]


def test_a_run_that_costs_something_else_than_was_confirmed_is_asked_about_again(
    settled: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr("shoal.studio.runs.start", lambda run, job, told: started.append(run.kind))
    settled.guarantee("card", "dp")
    page = settled.post("run/release")
    confirmed = json.loads(re.search(r"id=\"confirm-run\"[^>]*data-body='([^']+)'", page)[1])
    # changed in another window meanwhile
    settled.guarantee("typed", "2", "epsilon")
    assert "ε = 2" in settled.post("run/release", **confirmed)
    settled.guarantee("typed", "1", "epsilon")
    settled.post("guarantee", what="ledger", ledger="/tmp/ledger.sqlite", **{"data-set": "survey"})
    assert "charges it to the ledger /tmp/ledger.sqlite" in settled.post("run/release", **confirmed)
    assert started == []


def test_a_rehearsal_needs_no_confirmation_and_a_private_choice_does(
    settled: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr("shoal.studio.runs.start", lambda run, job, told: started.append(run.kind))
    settled.guarantee("card", "dp")
    settled.column("sex", "publish")
    settled.guarantee("method", "ranking-dp")
    assert "uses <b>ε = 0.1</b> per row" in settled.post("run/buy", price="0.1")
    assert started == []
    settled.run("rehearse")
    assert started == ["rehearse"]
    settled.session.runs.clear()
    settled.run("buy", price="0.1")
    assert started == ["rehearse", "buy"]


def test_text_where_numbers_are_declared_is_named_with_its_row(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "text.csv"
    path.write_text("pay,n\n12,1\nmuch,2\n", "utf-8")
    tab.upload(path)
    tab.column("pay", "kind", "numeric")
    tab.column("pay", "range", ["0", "100"])
    tab.column("n", "range", ["0", "10"])
    tab.vouch("law")
    page = tab.post("step/guarantee")
    assert "'much'" in page
    assert "row 2" in page


def test_a_rehearsal_may_be_looked_at_as_often_as_wanted(settled: Tab) -> None:
    assert settled.session.rehearses_first
    finished(settled.session, "rehearse")
    page = settled.post("step/judge")
    assert "Synthetic records: no facts about these records are shown." in page
    settled.guarantee("typed", "25", "k")
    assert settled.session.look_ahead().statement["recorded"] == []
    assert not settled.session.rehearses_first
    assert "Nothing to publish yet" in settled.post("step/publish")


def test_a_run_that_was_never_looked_at_gives_way_to_the_next(
    settled: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = finished(settled.session)
    monkeypatch.setattr("shoal.studio.runs.start", lambda run, job, told: None)
    settled.run()
    assert first not in settled.session.runs
    assert not first.folder.exists()


def test_publish_checks_the_bundle_and_gives_it_out(settled: Tab, tmp_path: Path) -> None:
    finished(settled.session)
    page = settled.post("step/publish")
    assert "Ready to publish" in page
    assert "Nothing is recorded that affects these declarations." in page
    found = settled.client.get(f"/session/{settled.name}/bundle.zip")
    assert found.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(BytesIO(found.content)) as archive:
        # neither when the files were made nor how they lie on this machine
        assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {one.external_attr >> 16 for one in archive.infolist()} == {0o644}
        archive.extractall(tmp_path)
    bundle = shoal.Bundle.load(tmp_path / "release-A")
    assert bundle.statement.publishable
    assert len(bundle.data) == 300
    # what the page shows is what the bundle holds, and what a script would use
    recipe = load_recipe(tmp_path / "release-A" / "method.toml")
    ahead = tmp_path / "ahead.toml"
    ahead.write_text(settled.session.look_ahead().recipe, "utf-8")
    assert load_recipe(ahead) == recipe


def test_what_was_taken_from_the_records_blocks_the_download_until_somebody_says_why(
    settled: Tab, tmp_path: Path
) -> None:
    settled.column("income", "source", "these records")
    run = finished(settled.session)
    settled.session.judge(run.letter)
    page = settled.post("step/publish")
    assert "Not ready to publish" in page
    assert "Recorded: domains inferred from the records: income" in page
    refused = settled.client.get(f"/session/{settled.name}/bundle.zip")
    assert "not ready to be published" in refused.text
    assert "20 characters" in settled.post("override", reason="because", name="release-A")
    assert "Type the folder's name" in settled.post(
        "override", reason="the minister asked for it today", name="x"
    )
    page = settled.post("override", reason="the minister asked for it today", name="release-A")
    assert "Download the bundle" in page
    found = settled.client.get(f"/session/{settled.name}/bundle.zip")
    with zipfile.ZipFile(BytesIO(found.content)) as archive:
        archive.extractall(tmp_path)
        names = [Path(name).name for name in archive.namelist()]
    assert "override.json" in names
    kept = json.loads((tmp_path / "release-A" / "override.json").read_text("utf-8"))
    assert kept["reason"] == "the minister asked for it today"
    statement = shoal.Bundle.load(tmp_path / "release-A").statement
    assert statement.override == kept["reason"]
    assert not statement.publishable


def test_private_advice_never_stands_in_a_bundle(settled: Tab) -> None:
    run = finished(settled.session)
    facts = run.facts
    written = "".join(path.read_text("utf-8", "replace") for path in run.bundle.iterdir())
    for line in facts["measured"]:
        assert line not in written
    # publishing shows nothing of it either, before it was looked at
    page = settled.post("step/publish")
    assert "are shown on the page Judge, and not before" in page
    assert not any(line in page for line in facts["measured"])
    assert used(settled) == []
    settled.post("step/judge")
    assert all(line in settled.post("step/publish") for line in facts["measured"])
    assert used(settled) == ["released", "measured"]


def test_a_rehearsal_shows_nothing_of_a_run_that_was_not_opened(settled: Tab) -> None:
    finished(settled.session, "rehearse")
    settled.guarantee("typed", "25", "k")
    run = finished(settled.session)
    page = settled.post("judge", run="A")
    assert not run.seen
    assert used(settled) == []
    assert page.count('class="dot run"') == 1
    # it can be chosen, and then it is drawn
    assert 'id="run-B"' in page
    assert settled.post("judge", run="B").count('class="dot run"') == 2
    assert run.seen


def test_judge_shows_the_person_and_what_was_published(settled: Tab) -> None:
    finished(settled.session)
    page = settled.post("step/judge")
    assert "Could someone re-identify row 17?" in page
    assert "an illustration, not the guarantee" in page
    assert "people grouped with them" in page
    for tab in ("relations", "groups", "learning"):
        assert 'data-into="#part"' in settled.post("judge", what="tab", tab=tab)
    assert "row 300?" in settled.post("judge", what="person", value="9999")


def test_the_most_exposed_person_is_the_one_whose_own_row_stands_out_most() -> None:
    values = np.random.default_rng(0).integers(0, 100, (40, 2))
    # far from everybody else
    values[23] = 500
    original = pa.table({"a": values[:, 0], "b": values[:, 1]})
    known = {"role": "quasi-identifier", "type": "integer", "lo": 0, "hi": 500}
    schema = shoal.Schema.from_dict({"attribute": [{"name": name, **known} for name in ("a", "b")]})
    bare = shoal.protect(original, schema, "k-anonymity", k=1)
    found = pairs(read(original), bare, ("a", "b"))
    assert found is not None
    assert exposed(found) == {"row": 24, "compared": 40, "of": 40}
    one = person(found, 24, bare)
    assert one["found"]
    assert one["sentence"] == "Yes, in this attempt: the nearest published row is this person's own."
    hidden = shoal.protect(original, schema, "k-anonymity", k=40)
    alike = person(pairs(read(original), hidden, ("a", "b")), 24, hidden)
    assert alike["companions"] == 40
    assert alike["sentence"] == (
        "Not with certainty. 40 published rows are equally near: the intruder has to guess among them."
    )


def test_methods_whose_rows_belong_to_nobody_say_why_nobody_is_looked_for(settled: Tab) -> None:
    settled.guarantee("card", "dp")
    settled.guarantee("method", "tree-dp")
    finished(settled.session)
    page = settled.post("step/judge")
    assert "Method 'tree-dp' draws synthetic records: no published row belongs to this person." in page
    assert "no row is known to come from a particular record" in page
    assert "The most exposed person" not in page


def test_equivalence_classes_are_counted_again_in_the_file(settled: Tab) -> None:
    settled.guarantee("card", "k-anonymity")
    run = finished(settled.session)
    assert "Equivalence classes of at least 5 confirmed in the released file" in settled.post("step/publish")
    table = run.bundle / "data.csv"
    header, first, *rest = table.read_text("utf-8").splitlines()
    # somebody who is alike to nobody
    lonely = ",".join(["119", *first.split(",")[1:]])
    table.write_text("\n".join([header, lonely, *rest]) + "\n", "utf-8")
    page = settled.post("step/publish")
    assert "The smallest has 1, equal in age, sex." in page
    assert "Not ready to publish" in page


def test_the_verdict_has_the_words_and_lights_of_every_other_page(settled: Tab) -> None:
    run = finished(settled.session)
    _, release = run.kept
    found = verdict(release, shoal.evaluate(run.kept[0], release))
    page = settled.post("step/judge")
    for line in (*found.public.limits, *(line.removeprefix("- ") for line in found.measured.lines)):
        assert line in page
    assert [light["level"] for light in run.facts["lights"]] == [
        found.measured.risk_level,
        found.measured.usefulness.level,
    ]
    officer = page_text(settled.post("step/publish"), "text-officer")
    assert "Internal, not for publication: Utility" in officer


def used(tab: Tab) -> list[str]:
    """What the journal knows of the table of a tab."""
    return [entry.kind for entry in Journal.open().entries() if entry.kind != "declared"]


def page_text(page: str, place: str) -> str:
    return page.partition(f'id="{place}"')[2].partition("</section>")[0]


def test_a_private_choice_is_offered_where_the_claim_can_carry_it(settled: Tab) -> None:
    assert "choose k privately" not in settled.post("step/guarantee")
    settled.guarantee("card", "dp")
    settled.column("sex", "publish")
    settled.guarantee("method", "ranking-dp")
    assert settled.session.recipe.settings["link"] == "off"
    assert "choose k privately" in settled.post("step/guarantee")
    told: list[Any] = []
    buy({**job_of(settled.session), "price": "0.1"}, told.append)
    run = StudioRun(
        "Z", "buy", settled.session.recipe, settled.session.folder / "none", state="done", bought=told[-1]
    )
    heard(settled.session, run)
    assert settled.session.recipe.settings["k"] == str(told[-1]["k"])
    ahead = settled.session.look_ahead()
    assert ahead.statement is not None
    assert ahead.statement["epsilon"] == 1.1
    assert ahead.statement["data_dependent"] == []
    # another k than the one that was bought is not paid for
    settled.guarantee("typed", str(told[-1]["k"] + 1), "k")
    assert settled.session.look_ahead().statement["data_dependent"] != []


def test_what_was_learned_stays_with_the_run_that_it_is_about(settled: Tab) -> None:
    first, second = (finished(settled.session, "rehearse") for _ in range(2))
    learned = StudioRun(
        "Z", "learn", settled.session.recipe, settled.session.folder / "none", state="done", of=first.folder
    )
    learned._facts = {"target": "sex"}
    # somebody looks at another one meanwhile
    settled.session.judge(second.letter)
    heard(settled.session, learned)
    assert first.facts["learning"] == learned.facts
    assert second.facts.get("learning") != learned.facts


@pytest.mark.slow
def test_compared_settings_arrive_one_by_one_and_can_be_taken(settled: Tab) -> None:
    told: list[Any] = []
    more = {
        "methods": ["mdav-dp", "ranking-dp"],
        "ks": [5, 50],
        "rows": 300,
        "epsilon": "1",
    }
    compare({**job_of(settled.session), **more}, told.append)
    arrived = [len(message["dots"]) for message in told if message["event"] == "dots"]
    assert arrived == [1, 2, 3, 4]
    run = StudioRun("Z", "compare", settled.session.recipe, settled.session.folder / "none", state="done")
    run.dots, run.loss = told[-1]["dots"], told[-1]["loss"]
    finished(settled.session, "rehearse")
    settled.session.runs.append(run)
    page = settled.post("step/judge")
    assert page.count("data-double=") == 5
    shown = settled.post("judge", what="dot", value=run.dots[0]["words"])
    assert 'aria-pressed="true"' in shown
    assert "Use these settings" in shown
    page = settled.post("judge", what="take", value={"method": "ranking-dp", "k": 50})
    assert "Which guarantee do you want to give?" in page
    assert (settled.session.recipe.method, settled.session.recipe.settings["k"]) == ("ranking-dp", "50")
    assert settled.session.look_ahead().statement["recorded"] == []


def test_cards_say_nothing_that_does_not_hold() -> None:
    for card in BY_NAME.values():
        for text in (card.title, card.meaning, card.whom):
            assert "nobody can tell" not in text.lower()
