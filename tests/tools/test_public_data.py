"""Where the public data sets are looked for, and what becomes of a test that needs them and finds none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conftest
from tools.offices import offices_folder
from tools.public_data import data_folder


def test_the_folder_is_the_one_named_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    assert data_folder() == tmp_path.resolve()
    monkeypatch.setenv("SHOAL_DATA", "")
    assert data_folder().parts[-2:] == ("shared", "data")


def test_an_absent_file_skips_a_test_and_fails_it_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "DATA_FOLDER", tmp_path)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(
        pytest.skip.Exception, match=r"census\.csv is not here: put .* in SHOAL_DATA$"
    ) as told:
        conftest.data_file("census.csv")
    assert "\n" not in str(told.value)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"census\.csv is not here"):
        conftest.data_file("census.csv")


def test_the_offices_figures_have_a_folder_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_OFFICES", str(tmp_path))
    assert offices_folder() == tmp_path.resolve()
    monkeypatch.setattr(conftest, "OFFICES_FOLDER", tmp_path)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"fuzz\.json is not here: put .* in SHOAL_OFFICES$"):
        conftest.offices_file("fuzz.json")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"fuzz\.json is not here"):
        conftest.offices_file("fuzz.json")
