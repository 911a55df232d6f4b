"""What things may be called: names of data sets, analysts and keys, plain enough for paths, headers and databases."""

from __future__ import annotations

import re

from shoal.errors import OptionError
from shoal.text import Message

# written so that Python, pydantic and JSON schema read them alike
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$"
KEY = r"^[A-Za-z0-9_.:\-]{1,100}$"

DATA_SET = Message.of("named-data-set")
ANALYST = Message.of("named-analyst")
TOKEN_OWNER = Message.of("named-token-owner")


def plain_name(text: str, what: Message) -> str:
    """The name, or an error that says what a name may be.

    >>> plain_name("survey-2026", DATA_SET)
    'survey-2026'
    """
    if not re.fullmatch(NAME.strip("^$"), text, re.ASCII):
        raise OptionError("cannot-be-called", what=what, text=text[:80])
    return text
