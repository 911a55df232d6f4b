"""What the words of a column's name suggest: its role, and a range that everybody knows. No record is looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shoal.columns.attribute import Role
from shoal.columns.kinds import KIND_FACTS, Kind


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
# the whole name of a column that says who somebody is
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
# weights that people have
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
# what everybody knows about a quantity of that name
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
    """Whether a name says who somebody is, as that of a number or code of a person does.

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
    """The role that a name suggests; what points at a person, a weight or free text is never one that is released.

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
