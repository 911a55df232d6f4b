"""The uniform primitives are exact by exhaustion over small words; no two workers see the same words."""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shoal.errors import OptionError
from shoal.noise import Seeded, Source, SystemEntropy, source
from shoal.noise.entropy import flip_by_digits, permute_by_keys, uniform_below

from .decision_tree import Branching, enumerate_paths

FALSE_ALARM = 1e-9


@pytest.mark.parametrize("bound", range(1, 256))
def test_every_value_below_a_bound_owns_equally_many_words(bound: int) -> None:
    value, fits = uniform_below(np.arange(256, dtype=np.uint8), np.asarray(bound), bits=8)
    counts = np.bincount(value[fits], minlength=bound)
    assert counts.size == bound
    assert counts.min() == counts.max() >= 1
    assert 2 * fits.sum() >= 255


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_a_rational_coin_has_exactly_its_probability_whatever_the_digit_width(bits: int) -> None:
    for under in range(1, 8):
        for above in range(under + 1):
            ratio = np.asarray(above, dtype=np.uint64), np.asarray(under, dtype=np.uint64)
            outcomes, undecided = enumerate_paths(
                lambda digits, ratio=ratio: bool(flip_by_digits(digits, *ratio, 1, bits)[0]), 1e-6, raw=True
            )
            heads = outcomes.get(True, Fraction(0))
            assert heads <= Fraction(above, under) <= heads + undecided
            assert undecided < Fraction(1, 10**5)


def test_rational_coins_of_different_ratios_are_flipped_independently() -> None:
    above, under = np.array([1, 2], dtype=np.uint64), np.array([2, 3], dtype=np.uint64)
    outcomes, undecided = enumerate_paths(
        lambda digits: tuple(flip_by_digits(digits, above, under, 2, 2).tolist()), 1e-6, raw=True
    )
    for first, second in itertools.product([False, True], repeat=2):
        exact = Fraction(1, 2) * (Fraction(2, 3) if second else Fraction(1, 3))
        assert outcomes[first, second] <= exact <= outcomes[first, second] + undecided
    assert undecided < Fraction(1, 10**4)


class TinyKeys(Branching):
    """Sorting keys with four possible values, so that ties are the rule."""

    def digits(self, bits: int, n: int) -> Any:
        assert bits == 64
        return np.array([self.choose([Fraction(1, 4)] * 4) for _ in range(n)], dtype=np.uint64) << np.uint64(
            62
        )


def test_every_permutation_has_exactly_the_same_probability_even_among_ties() -> None:
    weights, undecided = enumerate_paths(
        lambda keys: tuple(permute_by_keys(keys, 3, key_bits=2).tolist()), 1 / 4**6, kind=TinyKeys
    )
    assert set(weights) == set(itertools.permutations(range(3)))
    assert len(set(weights.values())) == 1
    assert undecided < Fraction(1, 4)


@given(n=st.integers(0, 300), seed=st.integers(0, 2**70))
def test_a_permutation_contains_every_index_once(n: int, seed: int) -> None:
    assert sorted(Seeded(seed).permutation(n).tolist()) == list(range(n))


def test_permutations_of_four_are_uniform() -> None:
    entropy = SystemEntropy()
    counts = Counter(tuple(entropy.permutation(4).tolist()) for _ in range(12_000))
    assert stats.chisquare([counts[p] for p in itertools.permutations(range(4))]).pvalue > FALSE_ALARM


@given(
    bounds=st.lists(st.integers(1, 2**63 - 1) | st.integers(1, 300), min_size=1, max_size=20),
    seed=st.integers(0, 99),
)
def test_integers_stay_below_their_own_bound(bounds: list[int], seed: int) -> None:
    drawn = Seeded(seed).below(bounds)
    assert drawn.dtype == np.int64
    assert all(0 <= value < bound for value, bound in zip(drawn.tolist(), bounds, strict=True))


@pytest.mark.parametrize("bound", [3, 200, 257, 10**6, 2**24 + 1, 10**9, 3 * 2**61])
def test_integers_below_a_bound_are_uniform(bound: int) -> None:
    n, cells = 100_000, min(bound, 24)
    drawn = SystemEntropy().below(bound, n)
    edges = [-(-bound * cell // cells) for cell in range(cells + 1)]
    counts = np.histogram(drawn, bins=np.array(edges) - 0.5 if bound < 2**50 else np.array(edges))[0]
    expected = np.diff([edge / bound for edge in edges]) * n
    assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM


def test_the_uniformity_test_rejects_a_biased_remainder() -> None:
    biased = SystemEntropy().digits(8, 100_000).astype(np.int64) % 200
    counts = np.bincount(biased, minlength=200)
    assert stats.chisquare(counts).pvalue < FALSE_ALARM


@pytest.mark.parametrize("bad", [0, -1, 2**63, 1.5, [3, 0]])
def test_a_bound_that_is_no_positive_integer_is_refused(bad: Any) -> None:
    with pytest.raises(OptionError, match="bound"):
        Seeded(1).below(bad)


@pytest.mark.parametrize(("above", "under"), [(-1, 2), (3, 2), (0, 0), (1, 2**56), (0.5, 1)])
def test_a_ratio_that_is_no_probability_is_refused(above: Any, under: Any) -> None:
    with pytest.raises(OptionError, match=r"probability|denominator"):
        Seeded(1).bernoulli(above, under)


@pytest.mark.parametrize("under", [1, 2**16, 2**48 - 1, 2**48, 2**56 - 1])
def test_certain_coins_are_certain_at_every_size_of_the_ratio(under: int) -> None:
    assert SystemEntropy().bernoulli(under, under, 100_000).all()
    assert not SystemEntropy().bernoulli(0, under, 100_000).any()
    heads = int(SystemEntropy().bernoulli([under - under // 3] * 100_000, under).sum())
    assert stats.binomtest(heads, 100_000, (under - under // 3) / under).pvalue > FALSE_ALARM


def test_shapes_follow_numpy() -> None:
    entropy = Seeded(1)
    assert entropy.below(5).shape == ()
    assert entropy.below([[2], [3]], (2, 4)).shape == (2, 4)
    assert entropy.below(5, 0).shape == (0,)
    assert entropy.bernoulli([[1], [2]], [3, 4, 5]).shape == (2, 3)
    with pytest.raises(OptionError, match="size"):
        entropy.below([2, 3], 5)


@pytest.mark.parametrize("bits", [1, 8, 16, 32, 64])
def test_digits_use_every_bit_of_the_words_once(bits: int) -> None:
    words = Seeded(4).words(8)
    digits = Seeded(4).digits(bits, 512 // bits)
    rebuilt = sum(int(digit) << (bits * place) for place, digit in enumerate(digits))
    assert rebuilt == sum(int(word) << (64 * place) for place, word in enumerate(words))


def test_a_seed_gives_the_same_words_on_every_platform() -> None:
    assert Seeded(2024).words(3).tolist() == KNOWN_WORDS
    together = Seeded(9).words(7)
    apart = Seeded(9)
    assert np.concatenate([apart.words(3), apart.words(4)]).tolist() == together.tolist()
    assert Seeded(9).words(4).tolist() != Seeded(10).words(4).tolist()


KNOWN_WORDS = [4991927602291500368, 11418230488571132843, 714154137916129582]


@pytest.mark.parametrize("bad", [-1, 1.0, "1", True, np.True_])
def test_a_seed_that_is_no_natural_number_is_refused(bad: Any) -> None:
    with pytest.raises(OptionError, match="seed"):
        source(bad)


def test_no_seed_means_one_shared_secure_source() -> None:
    assert source(None) is source(None)
    assert not source(None).reproducible
    assert source(0).reproducible


def _words_after_fork(entropy: Source, workers: int = 3) -> list[bytes]:
    """The next words of the parent and of children forked while the parent's buffer is full."""
    entropy.words(1)
    pipes = [os.pipe() for _ in range(workers)]
    for _, write in pipes:
        child = os.fork()
        if child == 0:
            os.write(write, entropy.words(64).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
    seen = [os.read(read, 512) for read, _ in pipes]
    for end in itertools.chain.from_iterable(pipes):
        os.close(end)
    return [*seen, entropy.words(64).tobytes()]


def test_forked_workers_never_repeat_words() -> None:
    streams = [np.frombuffer(raw, dtype=np.uint64) for raw in _words_after_fork(SystemEntropy())]
    assert all(stream.size == 64 for stream in streams)
    assert np.unique(np.concatenate(streams)).size == 4 * 64


def test_the_fork_test_rejects_a_buffer_that_survives_the_fork() -> None:
    streams = _words_after_fork(Seeded(1))
    assert len(set(streams)) == 1


def test_a_fork_while_another_thread_holds_the_lock_does_not_hang_the_child() -> None:
    entropy = SystemEntropy()
    entropy.words(1)
    with entropy._lock:
        child = os.fork()
        if child == 0:
            entropy.words(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def test_a_forked_child_holds_no_word_of_its_parent_even_before_it_asks() -> None:
    entropy = SystemEntropy()
    entropy.words(1)
    child = os.fork()
    if child == 0:
        os._exit(int(entropy._buffer.size > 0))
    assert os.waitpid(child, 0)[1] == 0
    assert entropy._buffer.size > 0


def test_a_process_cloned_behind_the_interpreters_back_drops_the_buffer() -> None:
    entropy = SystemEntropy()
    entropy.words(1)
    held = set(entropy._buffer.tolist())
    entropy._process = -1
    assert not held & set(entropy.words(64).tolist())


def _words_of_threads(draw: Callable[[], Any], threads: int = 8) -> list[int]:
    seen: list[list[int]] = [[] for _ in range(threads)]
    start = threading.Barrier(threads)

    def work(mine: list[int]) -> None:
        start.wait()
        for _ in range(500):
            mine.extend(draw().tolist())

    workers = [threading.Thread(target=work, args=(mine,)) for mine in seen]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return list(itertools.chain.from_iterable(seen))


@pytest.mark.parametrize("entropy", [SystemEntropy(), Seeded(3)], ids=["system", "seeded"])
def test_threads_never_see_the_same_word_twice(entropy: Source) -> None:
    seen = _words_of_threads(lambda: entropy.words(37))
    assert len(seen) == 8 * 500 * 37
    assert len(set(seen)) == len(seen)


def test_the_thread_test_rejects_a_stream_per_thread_from_one_seed() -> None:
    local = threading.local()

    def draw() -> Any:
        if not hasattr(local, "stream"):
            local.stream = Seeded(3)
        return local.stream.words(37)

    seen = _words_of_threads(draw)
    assert len(set(seen)) < len(seen)


def test_words_already_handed_out_do_not_change_later() -> None:
    entropy = SystemEntropy()
    first = entropy.words(10)
    kept = first.copy()
    first_again = entropy.words(SystemEntropy._BUFFER_WORDS - 1)
    first_again[:] = 0
    assert (first == kept).all()
    assert entropy.words(10).any()
