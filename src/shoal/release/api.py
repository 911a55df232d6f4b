"""`protect` and `redo`: one call for a release, and the repetition of a release from its log."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.columns import Schema, read_as_asked
from shoal.errors import LeftOutWarning, OptionError
from shoal.io import is_spark_frame
from shoal.mechanisms import DEFAULT_METHOD, Method, load_log
from shoal.progress import Cancel, Progress, silent
from shoal.release.protection import Release, carry_out, prepare
from shoal.release.publication import Engine, Published, publish
from shoal.release.uses import Uses, declared_name, warn


def protect(
    data: Any,
    schema: Schema | None = None,
    method: str | Method = DEFAULT_METHOD,
    epsilon: Any = None,
    k: int | None = None,
    seed: int | None = None,
    *,
    work: str | Path | None = None,
    staging: str | Path | None = None,
    dataset: str | None = None,
    same_records: str | Sequence[str] | None = None,
    not_same_records: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Release:
    """Turn a table about people into one that can be published.

    Args:
        data: a path (see `shoal.io.FORMATS`), a pandas, polars or pyarrow table, or a Spark DataFrame with `work`.
        schema: kinds, roles and public domains; without one they are guessed and domains must be given.
        method: the name of a method, see `shoal.methods()`, or a method with its parameters, such as
            `shoal.PairsDP(epsilon="1")`; by default `pairs-dp`, the strongest promise for a whole table.
        epsilon: the privacy budget; decimal text is exact, a float means its shortest decimal text.
        k: minimum cluster size.
        seed: makes the release reproducible and therefore not publishable.
        columns: the columns to release, or a single one; the others are left out.
        domains: public domain by column, instead of or on top of the schema: (lo, hi), or for a nominal column its
            values or a `shoal.Taxonomy`.
        domain_from_data: take missing domains as 0 to this multiple of the maximum; taints the statement.
        outside: what to do with values outside their domain: "error" or "clip".
        missing: what to do with missing values: "error", "drop" (taints the statement), "category" (one more value; in
            columns with an order with pairs-dp, tree-dp and laplace) or "separate" (they stay missing, in clusters of
            their own).
        na: texts that stand for a missing value, such as ["?"].
        types: declared type by column (integer, decimal:2, date, timestamp, text, boolean), on top of the schema; types
            of a file's other columns are read off the records, which taints the statement.
        file: how a text file is written, such as {"encoding": "latin-1", "decimal": ","}, on top of the schema.
        labels: cluster labels made elsewhere, for methods with partition="given".
        tuned: what was chosen by looking at these records: settings such as "k", "columns", "domains" or "domain:NAME";
            taints the statement, unless it is the `Tuning.tuned` of a private choice.
        tuned_epsilon: what a private choice cost, as a recipe of `shoal tune --private` has it; added to the claim,
            which must be `dp`, if the values that it bought are used.
        tuned_choice: what it bought, with the candidates it was chosen from.
        most_epsilon: the ε per person, 10 by default, above which the verdict is "do not publish".
        override: why a release above it is published all the same; stands in the statement.
        work: a new folder for the release of a Spark DataFrame, which all workers can write to: a bundle as `publish`
            writes it, or the address of one, as `publish` takes it. `data` of the release is a DataFrame that reads it.
        staging: with an address as `work`, as for `publish`.
        dataset: the name of the data set, the same for everything about the same people: the statement holds what the
            journal of use knows under it. Without one nothing is taken from the journal.
        same_records: names of other data sets, as a warning gives them, that hold the same records; a declaration,
            which stands in the statement. `not_same_records`: names of those that do not.
        progress: called with (what, done, total) during long work; raise `shoal.CancelledError` in it to stop.
        options: settings of the method, such as split, groups, link, remainder.

    Guarantee:
        Whatever `release.statement` says, and nothing else.

    Cost:
        One pass over the table plus the partition: a sort per attribute for `ranking-dp`, see
        `shoal.partition.mdav` for `mdav-dp`.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 45, 28, 60], "income": [20.5, 31.0, 18.2, 44.9]})
    >>> release = protect(people, method="mdav-dp", epsilon="1", k=2, seed=1,
    ...                   domains={"age": (0, 120), "income": (0.0, 200.0)})
    >>> release.data.column_names, release.data.num_rows, release.statement.model
    (['age', 'income'], 4, 'dp-given-partition')
    """
    tell = progress or silent
    if is_spark_frame(data):
        # engines bring every mechanism along
        from shoal.release.publication import publish

        if work is None:
            raise OptionError("one-call-work-missing-spark-dataframe-released-into", option="work")
        names: dict[str, Any] = {"same_records": same_records, "not_same_records": not_same_records}
        place: dict[str, Any] = {"out": work, "staging": staging}
        more: dict[str, Any] = {**place, "dataset": dataset, "progress": progress, **names, **options}
        return publish(data, schema, method, epsilon, k, seed, **more).release
    if work is not None or staging is not None:
        named = "staging" if work is None else "work"
        raise OptionError("option-spark-dataframe", option=named)
    tell("reading the table", 0, 1)
    # whether it may be is for the method to say
    table = read_as_asked(data, {"schema": schema, **options}, empty=True)
    prepared = prepare(table, schema, method, epsilon, k, seed, **options)
    if schema is None and prepared.declared.columns is None and prepared.described.left_out:
        left_out = LeftOutWarning("left-out", columns=prepared.described.left_out)
        warnings.warn(left_out, stacklevel=2)
    uses = Uses.of(
        table,
        declared_name(dataset, schema),
        same_records=same_records,
        not_same_records=not_same_records,
    )
    questions = uses.questions()
    release = carry_out(uses.stated(prepared), tell)
    use = uses.note_release(release.statement, by="shoal.protect")
    warn([*questions, uses.problem])
    return replace(release, use=use)


def redo(
    log: str | Path,
    data: Any,
    *,
    out: str | Path,
    internal: str | Path | None = None,
    format: str | None = None,
    evaluate: bool = False,
    ledger: str | None = None,
    dataset: str | None = None,
    same_records: str | Sequence[str] | None = None,
    not_same_records: str | Sequence[str] | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Published:
    """Repeat a release on another table, such as next year's: the same steps, method, settings and sources.

    A log holds no seed, so the noise is drawn anew and the new release is judged by its own statement. What the log
    says was chosen on the records stays a choice on records. The new release costs its own budget: name the ledger and
    the data set of the people whom the new table is about.

    Args:
        log: the `log.toml` of a release, or its folder.
        data: the new table, with the same columns.
        out: a new folder for the bundle, as for `shoal.publish`, like all other arguments.

    Raises:
        InputError, OptionError: the log cannot be read; parameters of a step or a domain were taken from the records
            of the first release, and are not in the log; or the new table does not fit.
    """
    recipe = load_log(log)
    return publish(
        data,
        **recipe,
        out=out,
        internal=internal,
        format=format,
        evaluate=evaluate,
        ledger=ledger,
        dataset=dataset,
        same_records=same_records,
        not_same_records=not_same_records,
        engine=engine,
        progress=progress,
        cancel=cancel,
    )
