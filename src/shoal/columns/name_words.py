"""What the words of a column's name suggest: its role, and a range that everybody knows. No record is looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shoal.columns.attribute import Role
from shoal.columns.kinds import KIND_FACTS, Kind

_IDENTIFIER_WORDS = {
    *(
        "id",
        "ids",
        "uid",
        "uuid",
        "guid",
        "pid",
        "ssn",
        "nin",
        "nif",
        "dni",
        "tin",
        "mrn",
        "passport",
        "licence",
        "license",
    ),
    *(
        "email",
        "mail",
        "phone",
        "telephone",
        "tel",
        "mobile",
        "fax",
        "iban",
        "account",
        "ip",
        "imei",
        "url",
        "username",
    ),
    *(
        "login",
        "address",
        "street",
        "name",
        "names",
        "surname",
        "firstname",
        "lastname",
        "forename",
        "fullname",
        "vorname",
    ),
    *(
        "nachname",
        "prenom",
        "apellido",
        "apellidos",
        "badge",
        "serial",
        "barcode",
        "persnum",
        "persnr",
        "nr",
        "signature",
    ),
}
_WHO = (
    "person|pers|user|client|patient|pat|record|rec|utility|respondent|resp|case|customer|cust|member|employee|emp|staff|"
    "student|pupil|household|hh|family|fam|serial|account|acct|badge|card|policy|ticket|order|invoice|contract|file|row|line|"
    "sample|interview|subject|participant|insurance|social|tax"
)
_IDENTIFIER_ENDING = re.compile(
    rf"(^|[^a-z])({_WHO})[ _.-]*(id|num|no|nr|number|nummer|key)$|({_WHO})(id|num|nr)$|(nr|nummer)\.?$"
)
# the whole name of a column that says who somebody is
_PERSONS = {
    "patient",
    "person",
    "respondent",
    "client",
    "customer",
    "participant",
    "subject",
    "employee",
    "pupil",
    "student",
}
_WEIGHT_WORDS = {"weight", "weights", "wgt", "wght", "wt", "gewicht", "pond", "pondera", "weighting"}
_WEIGHT = re.compile(r"w(ei)?gh?t")
# weights that people have
_WEIGHED = {"kg", "kilo", "kilos", "g", "gram", "grams", "lb", "lbs", "body", "birth", "gain", "loss"}
_PROSE_WORDS = {
    *(
        "note",
        "notes",
        "comment",
        "comments",
        "remark",
        "remarks",
        "description",
        "text",
        "freetext",
        "verbatim",
        "memo",
    ),
    *("bemerkung", "bemerkungen", "observaciones", "commentaire", "details", "reason", "story"),
}
_QUASI_WORDS = {
    *("age", "sex", "gender", "race", "ethnicity", "zip", "zipcode", "postcode", "region", "county"),
    *(
        "country",
        "native",
        "birth",
        "birthdate",
        "born",
        "dob",
        "marital",
        "education",
        "occupation",
        "household",
    ),
}
# what everybody knows about a quantity of that name
_RANGES: Mapping[str, tuple[int, int]] = {
    "age": (0, 120),
    "percent": (0, 100),
    "percentage": (0, 100),
    "pct": (0, 100),
    "latitude": (-90, 90),
    "longitude": (-180, 180),
    "month": (1, 12),
}


def words_of(name: str) -> set[str]:
    """The words of a name.

    >>> sorted(words_of("hoursPer_week 2"))
    ['2', 'hours', 'per', 'week']
    """
    return set(re.split(r"[^0-9a-zà-ÿ%]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())) - {""}


def role_of(name: str, kind: Kind) -> Role:
    """The role that a name suggests; what points at a person, a weight or free text is never one that is released.

    >>> [role_of(name, "numeric") for name in ("persnum", "wght", "age", "weight_kg")]
    ['identifier', 'weight', 'quasi-identifier', 'confidential']
    """
    words = words_of(name)
    if (
        words & _IDENTIFIER_WORDS
        or (len(words) == 1 and words <= _PERSONS)
        or _IDENTIFIER_ENDING.search(name.lower())
    ):
        return "identifier"
    if (
        KIND_FACTS[kind].measured
        and not words & _WEIGHED
        and (words & _WEIGHT_WORDS or any(map(_WEIGHT.search, words)))
    ):
        return "weight"
    if words & _PROSE_WORDS and not KIND_FACTS[kind].ordered:
        return "identifier"
    if words & _QUASI_WORDS:
        return "quasi-identifier"
    return "confidential" if KIND_FACTS[kind].measured else "other"


def common_range(name: str) -> tuple[int, int] | None:
    """A range that is common knowledge for a quantity of this name, for a custodian to confirm.

    >>> common_range("hours per week"), common_range("share (%)"), common_range("income")
    ((0, 168), (0, 100), None)
    """
    words = words_of(name)
    if words & {"hours", "hrs", "hour"} and words & {"week", "weekly", "wk"}:
        return 0, 168
    if "%" in name:
        return 0, 100
    return next((ends for word, ends in _RANGES.items() if word in words), None)
