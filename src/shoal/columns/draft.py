"""Drafts of a schema: guess attributes from the types and names of columns.

A type inferred from the cells of a file is a fact about the records, and so is every guess that rests on it: its source
says so until a person has confirmed the draft.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np

from shoal.columns.attribute import DROPPED_ROLES, FACTS, RECORDS, SOURCES, Attribute, Role
from shoal.columns.kinds import KIND_FACTS, Kind
from shoal.io import ColumnType, Table, Variable, type_of

# number of values whose decimals are counted, and the most decimals that look chosen rather than computed
_LOOKED_AT = 10_000
# average number of words from which texts are prose; columns with fewer distinct values are too short to decide
_FEW_TEXTS, _WORDS_OF_PROSE, _OWN_TEXTS, _OWN_CODES = 20, 4, 0.9, 0.1
_CODE = re.compile(r"[A-Za-z]{0,4}[-_/ ]?\d{3,}[A-Za-z]?")
_MOST_DRAFTED = 6
# generic names of code columns
_BARE_CODES = frozenset(
    {"code", "key", "number", "reference", "schlüssel", "clé", "clave", "chiave", "chave", "sleutel", "klucz"}
)
COMMON = SOURCES[2]
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$")


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


# words of English, German, French, Spanish, Italian, Portuguese, Dutch and Polish, in this order
_IDENTIFIER_WORDS = _words(
    "id ids uid uuid guid pid ssn nin tin mrn passport licence license email mail phone telephone tel",
    "mobile fax iban account ip imei url username login address street name names surname firstname",
    "lastname forename fullname badge serial barcode signature persnum persnr nr kennung kennnummer",
    "ausweis telefon handy konto anschrift adresse strasse straße vorname nachname familienname",
    "unterschrift steuernummer versichertennummer nom noms prenom prénom prenoms prénoms identifiant",
    "courriel téléphone compte rue matricule siret nir apellido apellidos dni nif correo teléfono",
    "telefono cuenta dirección direccion domicilio calle cédula cedula nome cognome cognomi indirizzo",
    "codicefiscale telefonino matricola sobrenome apelido endereço endereco rua morada cpf nuit telemóvel",
    "naam voornaam achternaam adres straat telefoonnummer bsn rekening imię imie nazwisko pesel adres",
    "ulica telefonu konto",
)
_WHO = (
    "patiente?|paziente|paciente|pacjent|versicherten?|kunden?|klient|personne|persona|pessoa|osoba|haushalts?|ménage|menage|hogar|"
    "famiglia|família|gezin|person|pers|user|client|patient|pat|record|rec|utility|respondent|resp|case|customer|cust|member|employee|emp|staff|"
    "student|pupil|household|hh|family|fam|serial|account|acct|badge|card|policy|ticket|order|invoice|contract|file|row|line|"
    "sample|interview|subject|participant|insurance|social|tax"
)
_IDENTIFIER_ENDING = re.compile(
    rf"(^|[^a-z])({_WHO})[ _.-]*(id|num|no|nr|number|nummer|key)$|({_WHO})(id|num|nr)$|(nr|nummer)\.?$"
)
# complete column names that identify a person
_PERSONS = _words(
    "patient person respondent client customer participant subject employee pupil student patientin",
    "befragter befragte kunde kundin teilnehmer mitarbeiter schüler proband patiente personne enquêté",
    "enquete participante salarié élève nombre paciente persona encuestado cliente empleado alumno via",
    "paziente intervistato dipendente studente pessoa entrevistado empregado aluno patiënt persoon",
    "respondent klant deelnemer werknemer leerling pacjent osoba respondent klient pracownik uczeń",
)
_WEIGHT_WORDS = _words(
    "weight weights weighting wgt wght wt gewicht gewichtung hochrechnungsfaktor pond pondération",
    "ponderation ponderación ponderacion pondera pesi ponderazione ponderação ponderacao weging",
    "weegfactor",
)
_WEIGHT = re.compile(r"w(ei)?gh?t")
# body weights
_WEIGHED = _words(
    "kg kilo kilos g gram grams lb lbs body birth gain loss körper koerper geburt geburts corps corporel",
    "naissance corporal nacer nacimiento nascita nascimento corporeo lichaam geboorte ciała urodzenia",
)
_PROSE_WORDS = _words(
    "note notes comment comments remark remarks description text freetext verbatim memo details reason",
    "story bemerkung bemerkungen kommentar kommentare anmerkung anmerkungen beschreibung freitext notiz",
    "begründung remarque remarques commentaire commentaires observations texte motif observación",
    "observacion observaciones comentario comentarios descripción descripcion texto motivo osservazione",
    "osservazioni commento commenti descrizione testo nota observação observacao observações observacoes",
    "comentário comentários descrição opmerking opmerkingen toelichting omschrijving tekst uwaga uwagi",
    "komentarz opis",
)
_QUASI_WORDS = _words(
    "age sex gender race ethnicity zip zipcode postcode region county country native birth birthdate born",
    "dob marital education occupation household alter geschlecht plz postleitzahl bundesland kreis",
    "gemeinde land geburtsdatum geburtsjahr geboren familienstand bildung schulabschluss beruf haushalt",
    "haushaltsgröße staatsangehörigkeit nationalität âge sexe genre région departement département",
    "commune pays naissance matrimonial diplôme diplome profession ménage menage nationalité edad sexo",
    "género genero región comuna municipio provincia país pais nacimiento civil educación educacion",
    "ocupación ocupacion hogar nacionalidad età sesso genere regione provincia comune paese nascita",
    "istruzione professione cittadinanza famiglia idade região município municipio distrito nascimento",
    "escolaridade profissão profissao nacionalidade agregado leeftijd geslacht gemeente provincie",
    "geboortedatum geboortejaar geboorteland opleiding beroep huishouden nationaliteit wiek płeć plec",
    "województwo powiat gmina urodzenia wykształcenie zawód zawod gospodarstwo obywatelstwo",
)
# common knowledge about quantities of that name
_RANGES: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("age", "alter", "âge", "edad", "età", "idade", "leeftijd", "wiek"), (0, 120)),
    **dict.fromkeys(
        ("percent", "percentage", "pct", "prozent", "porcentaje", "percentuale", "procent"), (0, 100)
    ),
    "latitude": (-90, 90),
    "longitude": (-180, 180),
    **dict.fromkeys(("month", "monat", "mois", "mes", "mese", "mês", "maand"), (1, 12)),
}


def words_of(name: str) -> set[str]:
    """The words of a name.

    >>> sorted(words_of("hoursPer_week 2"))
    ['2', 'hours', 'per', 'week']
    """
    return set(re.split(r"[^\w%]+|_", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())) - {""}


def names_a_person(name: str) -> bool:
    """Whether a column name is that of a person's number or code.

    >>> [names_a_person(name) for name in ("patient_id", "Versichertennummer", "remarks", "party")]
    [True, True, False, False]
    """
    words = words_of(name)
    return bool(
        words & _IDENTIFIER_WORDS
        or (len(words) == 1 and words <= _PERSONS)
        or _IDENTIFIER_ENDING.search(name.lower())
    )


def role_of(name: str, kind: Kind) -> Role:
    """The role a name suggests; identifiers, weights and free text never get a released role.

    >>> [role_of(name, "numeric") for name in ("persnum", "wght", "age", "weight_kg")]
    ['identifier', 'weight', 'quasi-identifier', 'confidential']
    """
    words = words_of(name)
    if names_a_person(name):
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
    """A range that is common knowledge for a quantity of this name, for the custodian to confirm.

    >>> common_range("hours per week"), common_range("share (%)"), common_range("income")
    ((0, 168), (0, 100), None)
    """
    words = words_of(name)
    if words & {"hours", "hrs", "hour"} and words & {"week", "weekly", "wk"}:
        return 0, 168
    if "%" in name:
        return 0, 100
    return next((ends for word, ends in _RANGES.items() if word in words), None)


def stored_kind(dtype: Any) -> Kind:
    """The kind of a column by its type alone."""
    if dtype.is_numeric():
        return "numeric"
    return "date" if isinstance(dtype, nw.Date | nw.Datetime) else "nominal"


def guess(table: Table, name: str) -> Attribute:
    """Kind from the type, role from the words of the name; the values are hardly used."""
    dtype = table.dtype(name)
    kind = stored_kind(dtype)
    if dtype.is_temporal() or _looks_like_dates(table, name):
        kind = "date"
    elif type(dtype).__name__ == "Enum":
        kind = "ordinal"
    role = role_of(name, kind)
    # the type of a boolean column is its domain
    values = ("False", "True") if isinstance(dtype, nw.Boolean) else ()
    stored_type = _fitting(kind, type_of(dtype))
    if name in table.inferred:
        facts = ["kind", *(["type"] if stored_type else []), *(["domain"] if values else [])]
        known = dict.fromkeys(facts, RECORDS)
        return Attribute(name, kind, role, values=values, type=stored_type, source=known)
    step = Fraction(1) if stored_type == "integer" and KIND_FACTS[kind].measured else None
    # texts that look like dates are a fact about the records, whatever the column type
    source = {"kind": RECORDS} if KIND_FACTS[kind].days and stored_type == "text" else {}
    return Attribute(name, kind, role, step=step, values=values, type=stored_type, source=source)


def _fitting(kind: Kind, type: ColumnType | None) -> ColumnType | None:
    """The date type for texts of a file that look like dates."""
    return "date" if KIND_FACTS[kind].days and type is None else type


def drafted(table: Table) -> tuple[Attribute, ...]:
    """Guesses for a whole table: types, steps, rows per person, and the labels of a Stata or SPSS file.

    They are for a person to check, so every entry names these records as its source. Labels are public only if they
    were not derived from the records, as by Stata's `encode`.

    >>> import pyarrow as pa
    >>> from shoal.io import Codebook, Variable, read
    >>> answers = Variable(labels={1: "no", 2: "yes"}, texts={1: "no", 2: "yes"})
    >>> table = replace(read(pa.table({"q": ["no"]})), codebook=Codebook("stata", {"q": answers}))
    >>> drafted(table)[0].values
    ('no', 'yes')
    """
    attributes = [_drafted(table, guess(table, name)) for name in table.names]
    if table.codebook is not None:
        attributes = [_labelled(attribute, table.codebook.of(attribute.name)) for attribute in attributes]
    units = [attribute for attribute in attributes if attribute.role == "unit"]
    # a person is identified by one column: the first that repeats
    attributes = [
        replace(a, role="identifier", max_rows=None) if a.role == "unit" and a is not units[0] else a
        for a in attributes
    ]
    return tuple(attributes)


def _drafted(table: Table, attribute: Attribute) -> Attribute:
    """A guess with everything the records suggest, for a person to confirm."""
    name = attribute.name
    found = replace(attribute, source=dict.fromkeys(FACTS, RECORDS), format=_format(table, attribute))
    written = attribute.role == "other" and not attribute.kind_facts.ordered and name not in table.doubts
    if attribute.role == "identifier" or (written and (is_prose(table, name) or _is_key(table, name))):
        most = _most_rows(table, name)
        # remarks, and codes of named things, repeat without identifying a person
        anybodys = names_a_person(name) or name.strip().lower() in _BARE_CODES
        if most == 1 or is_prose(table, name) or not anybodys:
            return replace(found, role="identifier")
        return replace(found, role="unit", max_rows=most)
    if not attribute.kind_facts.measured:
        return found
    if attribute.role != "weight" and _counts_rows(table, attribute):
        return replace(found, role="identifier")
    if attribute.type == "integer":
        found = replace(found, step=Fraction(1))
    else:
        decimals = _decimals(table, name)
        if decimals is not None:
            found = replace(found, decimals=decimals, step=Fraction(1, 10**decimals))
    ends = common_range(name)
    if ends is None or attribute.role in DROPPED_ROLES:
        return found
    found = replace(found, lo=Fraction(ends[0]), hi=Fraction(ends[1]))
    return replace(found, source=dict.fromkeys(found.facts, RECORDS) | {"domain": COMMON})


def _format(table: Table, attribute: Attribute) -> str | None:
    """The declared date format, if any."""
    told = table.dates.get(attribute.name, table.conventions.date_format)
    return told if attribute.type in ("date", "timestamp") and table.reads_cells else None


def is_prose(table: Table, name: str) -> bool:
    """Whether a text column holds free text rather than names: free text can identify anyone."""
    from shoal.columns.column import texts

    if not isinstance(table.dtype(name), nw.String):
        return False
    found, _ = texts(table, name)
    words = [len(text.split()) for text in found if text]
    return len(words) >= _FEW_TEXTS and sum(words) / len(words) >= _WORDS_OF_PROSE


def _is_key(table: Table, name: str) -> bool:
    """Whether nearly every row of a text column has a unique text, or many have codes such as P0042."""
    from shoal.columns.column import texts

    if not isinstance(table.dtype(name), nw.String):
        return False
    found, which = texts(table, name)
    rows, own = int((which >= 0).sum()), [text for text in found if text]
    if len(own) < _FEW_TEXTS:
        return False
    coded = all(_CODE.fullmatch(text) for text in own)
    return len(own) > (_OWN_CODES if coded else _OWN_TEXTS) * rows


def _counts_rows(table: Table, attribute: Attribute) -> bool:
    """Whether integers are all different and close together, like row numbers."""
    if attribute.type != "integer":
        return False
    values = table.numeric(attribute.name)
    values = values[np.isfinite(values)]
    if values.size < _FEW_TEXTS or np.unique(values).size < values.size:
        return False
    return bool(values.max() - values.min() < 2 * values.size)


def _most_rows(table: Table, name: str) -> int:
    """Number of rows of the most frequent value; 1 if there are no values."""
    from shoal.columns.column import texts

    _, which = texts(table, name)
    return int(np.bincount(which[which >= 0]).max(initial=1))


def _decimals(table: Table, name: str) -> int | None:
    """The most decimals of any number in a column, None if they do not end."""
    values = table.numeric(name)
    values = np.unique(values[np.isfinite(values)])[:_LOOKED_AT]
    if not values.size:
        return None
    most = max(-_exponent(value) for value in values)
    return max(most, 0) if most <= _MOST_DRAFTED else None


def _exponent(value: Any) -> int:
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _labelled(attribute: Attribute, variable: Variable) -> Attribute:
    values = variable.categories
    if attribute.kind_facts.ordered or not values:
        return attribute
    if variable.measure == "ordinal" and len(values) > 1:
        return replace(attribute, kind="ordinal", ordered=values)
    return replace(attribute, values=values)


def _looks_like_dates(table: Table, name: str) -> bool:
    series = table.series(name)
    if str(table.dtype(name)) != "String":
        return False
    sample = [value for value in series.head(50).drop_nulls().to_list() if value]
    return bool(sample) and all(_ISO_DATE.match(value) for value in sample)
