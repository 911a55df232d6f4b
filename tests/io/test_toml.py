"""Every value that Shoal writes as TOML is read back as the same value."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.io.common import dumps

# everything but surrogates, which no file can hold
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
plain = st.one_of(texts, st.booleans(), st.integers(-(2**53), 2**53))
values = st.one_of(
    plain, st.lists(plain, max_size=3), st.lists(st.lists(texts, max_size=2), min_size=1, max_size=3)
)
tables = st.dictionaries(texts, values, max_size=4)


@given(
    st.dictionaries(texts, values, max_size=4),
    st.dictionaries(texts, tables, max_size=2),
    st.lists(tables.filter(bool), max_size=3),
)
def test_documents_read_back(top: dict[str, Any], inner: dict[str, Any], many: list[dict[str, Any]]) -> None:
    document = top | inner | ({"many": many} if many else {})
    assert tomllib.loads(dumps(document)) == document


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**6), max_value=10**6))
def test_fractions_read_back_as_the_same_decimal(value: Decimal) -> None:
    text = dumps({"x": Fraction(value), "list": [Fraction(value)]})
    read = tomllib.loads(text, parse_float=Decimal)
    assert Fraction(read["x"]) == Fraction(value)
    assert Fraction(read["list"][0]) == Fraction(value)


def test_keys_that_need_quotes_get_them() -> None:
    document = {"": 1, "a b": 2, "größe": 3, "a.b": 4, '"': 5, "2nd": 6, "a-b_c": 7}
    text = dumps(document)
    assert tomllib.loads(text) == document
    assert "a-b_c = 7" in text
    assert '"a.b" = 4' in text


def test_control_characters_are_escaped() -> None:
    document = {"x": "".join(map(chr, [*range(32), 127, 0x2028, 0x1F600]))}
    assert tomllib.loads(dumps(document)) == document
