"""Quick runs are repeatable, whichever tests ran before; forked processes use the system's entropy."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.noise import discrete_laplace
from shoal.noise.entropy import SystemEntropy, fresh_key, source
from tests.support.repeatable import words_of


def drawn(name: str) -> tuple[list[int], list[int], list[int]]:
    with words_of(name):
        noise = discrete_laplace(10**9, 5, SystemEntropy()).tolist()
        many = SystemEntropy().words(SystemEntropy._BUFFER_WORDS)[-9:].tolist()
        return noise, many, fresh_key().words(3).tolist()


def test_a_name_gives_the_same_words_and_another_name_others() -> None:
    first = drawn("one")
    source(None).words(7)  # what is left in the buffer is not handed to the next
    assert drawn("one") == first
    for mine, other in zip(first, drawn("two"), strict=True):
        assert not set(mine) & set(other)


def test_outside_of_a_name_words_come_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(n: int) -> bytes:
        asked.append(n)
        return b"\1" * n

    monkeypatch.setattr("tests.support.repeatable._current", None)
    monkeypatch.setattr(os, "urandom", counted)
    assert set(SystemEntropy().words(4).tolist()) == {0x0101010101010101}
    fresh_key()
    assert asked == [8 * SystemEntropy._BUFFER_WORDS, 32]


def test_a_forked_process_does_not_continue_the_stream_of_its_parent() -> None:
    with words_of("fork"):
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            os.write(write, SystemEntropy().words(9).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        theirs = set(np.frombuffer(os.read(read, 72), dtype=np.uint64).tolist())
        os.close(read)
        os.close(write)
        assert len(theirs) == 9
        assert not theirs & set(SystemEntropy().words(9).tolist())


@pytest.mark.skipif(settings.get_current_profile_name() != "quick", reason="other profiles draw anew")
def test_examples_of_a_quick_run_are_always_the_same() -> None:
    seen: list[int] = []

    @given(st.integers(0, 2**60))
    def collect(value: int) -> None:
        seen.append(value)

    collect()
    again, seen = seen, []
    collect()
    assert seen == again
    assert len(set(seen)) > 10
