"""People with several records: what one of them adds, and what tells how many there are.

Version 0.1.0 knows no people: there every record counts by itself, as in any unweighted sum.
"""

import inspect
import io
import json
from pathlib import Path

import numpy as np

import reticent
from tests.attacks.harness import Outcome, attack

OTHERS = 40
RECORDS = 500  # of the one person that is attacked
FAR = 12.0  # standard deviations of the noise
DELTA = 1e-6
PEOPLE_ARE_KNOWN = "person" in inspect.signature(reticent.PrivateMean).parameters


def _model(**options):
    """A mean of one column in [−1, 1], with people as the unit where the version knows them."""
    if not PEOPLE_ARE_KNOWN:
        options = {name: value for name, value in options.items() if name in ("ledger", "dataset")}
    bounds = reticent.Bounds(x={"value": (-1.0, 1.0)})
    return reticent.PrivateMean(bounds=bounds, epsilon=1.0, delta=DELTA, **options)


def _outcome(totals: list[tuple[float, float]]) -> Outcome:
    """By how much one person moved the noisy sum: (sum, standard deviation) with her at either
    end.
    """
    moved = abs(totals[0][0] - totals[1][0])
    sd = totals[0][1]
    return Outcome(
        broke=moved > FAR * sd,
        figure=f"one person moves the sum by {moved:.0f}; its noise has the sd {sd:.0f}",
    )


def _total(model) -> tuple[float, float]:
    for release in model.releases_:
        if release.statistic["name"] != "NumberOfUnits":
            return float(release.value[0]), float(release.sd[0])
    raise AssertionError("a mean releases a sum")


def _csv(path: Path, value: float, ids: list[str]) -> Path:
    """Others with one record each, and one person whose records have these ways of her name."""
    lines = [f"0,p{i}" for i in range(OTHERS)]
    lines += [f"{value},{name}" for name in ids]
    path.write_text("value,id\n" + "\n".join(lines) + "\n")
    return path


@attack("24a", f"A person with {RECORDS} records moves the sum by as many sensitivities")
def many_records() -> Outcome:
    totals = []
    for value in (-1.0, 1.0):
        path = _csv(Path("people.csv"), value, ["ann"] * RECORDS)
        totals.append(_total(_model(person="id").fit(path)))
    return _outcome(totals)


@attack("24b", "A person whose number is written in many ways counts as many people")
def spellings() -> Outcome:
    ways = ["7", " 7", "7 ", "\t7", '"7"', '" 7 "', "  7\t"]
    totals = []
    for value in (-1.0, 1.0):
        path = _csv(Path("people.csv"), value, [ways[i % len(ways)] for i in range(RECORDS)])
        totals.append(_total(_model(person="id").fit(path)))
    return _outcome(totals)


def _changing_dask(value: float):
    """A frame of as many records at every reading, which are one person's from the second on."""
    import dask.dataframe as dd
    import pandas as pd

    rows = OTHERS + RECORDS
    counter = Path(f"readings {value}")
    counter.write_text("0")

    def partition(number: int):
        readings = int(counter.read_text())
        counter.write_text(str(readings + 1))
        ids = [f"p{i}" for i in range(rows)]
        values = np.zeros(rows)
        if readings:
            ids = ["ann"] * rows
            ids[0] = "p0"
            values[1:] = value
        return pd.DataFrame({"value": values, "id": pd.Series(ids, dtype=object)})

    meta = pd.DataFrame({"value": pd.Series(dtype=float), "id": pd.Series(dtype=object)})
    return dd.from_map(partition, [0], meta=meta)


@attack("24c", "A dask frame has other records at the second reading, all of one person")
def other_rows_at_the_second_reading() -> Outcome:
    import dask

    totals = []
    with dask.config.set(scheduler="synchronous"):
        for value in (-1.0, 1.0):
            frame = _changing_dask(value)
            totals.append(_total(_model(person="id").fit(frame)))
    return _outcome(totals)


@attack("24d", "A file is written to between two readings, and all records are one person's")
def file_changes() -> Outcome:
    totals = []
    for value in (-1.0, 1.0):
        path = _csv(Path("people.csv"), 0.0, [f"q{i}" for i in range(RECORDS)])
        source = reticent.scan(path)
        kind = type(source)
        read = kind.blocks

        def blocks(self, fields, path=path, value=value, read=read):
            yield from read(self, fields)
            _csv(path, value, ["ann"] * RECORDS)

        kind.blocks = blocks
        try:
            if not PEOPLE_ARE_KNOWN:  # it has no first reading of people: read once before
                list(source.blocks([reticent.privacy.sources.base.Field("value")]))
            totals.append(_total(_model(person="id").fit(source)))
        finally:
            kind.blocks = read
    return _outcome(totals)


def _told(people: int) -> tuple[list[int], str]:
    """All numbers, and all words, that leave two fits."""
    numbers = []
    words = io.StringIO()
    for _ in range(4):
        data = np.column_stack([np.zeros(3 * people), np.repeat(np.arange(people), 3)])
        bounds = reticent.Bounds(x=[(-1.0, 1.0)])
        options = {"bounds": bounds, "epsilon": 1.0, "delta": DELTA}
        if PEOPLE_ARE_KNOWN:
            options |= {"person": "1", "neighbours": "add-remove"}
            model = reticent.PrivateMean(**options).fit(data)
        else:
            model = reticent.PrivateMean(**options).fit(data[:, :1])
        numbers.append(model.releases_[0].n)
        model.save("model.json", overwrite=True)
        words.write(repr(model) + str(model.guarantee_) + repr(model.guarantee_))
        words.write(json.dumps([str(one) for one in (model.get_params(), model.n_features_in_)]))
    return numbers, words.getvalue()


@attack("24e", "Numbers, words and refusals tell how many people there are")
def how_many() -> Outcome:
    people = 2713
    numbers, words = _told(people)
    exact = {people, 3 * people}
    channels = []
    if len(set(numbers)) == 1 and numbers[0] in exact:
        channels.append("the number in every release")
    if any(f"{one}" in words or f"{one:,}" in words for one in exact):
        channels.append("words about the model")
    refusals = []
    for rows in (0, 1):
        try:
            options = {"bounds": reticent.Bounds(x=[(-1.0, 1.0)]), "epsilon": 1.0, "delta": DELTA}
            if PEOPLE_ARE_KNOWN:
                options |= {"person": "1", "neighbours": "add-remove"}
            columns = 1 + PEOPLE_ARE_KNOWN
            reticent.PrivateMean(**options).fit(np.zeros((rows, columns)))
            refusals.append("")
        except reticent.ReticentError as error:
            refusals.append(str(error))
    if refusals[0] != refusals[1]:
        channels.append("a refusal of the empty table")
    figure = f"{len(channels)} channels tell"
    if channels:
        figure += f": {', '.join(channels)}"
    return Outcome(broke=bool(channels), figure=figure)


@attack("24f", "Fits for single records are charged to an account of people")
def records_charged_to_people() -> Outcome:
    ledger = reticent.Ledger("budget.db")
    try:
        ledger.open("people", epsilon=3, delta=DELTA, person="id")
    except TypeError:  # 0.1.0 knows no such unit
        ledger.open("people", epsilon=3, delta=DELTA)
    noise = reticent.calibrate(1.0, DELTA)
    refusal = ""
    shares = []
    for options in ({"person": "id"}, {}, {}):
        path = _csv(Path("people.csv"), 0.0, ["ann"] * RECORDS)
        try:
            _model(ledger="budget.db", dataset="people", **options).fit(path)
            protects = 1 if options and PEOPLE_ARE_KNOWN else RECORDS
            shares.append(1 / protects)
        except reticent.LedgerError as error:
            refusal = f" ({str(error).partition('. ')[0]})"
    stated = ledger.spent("people")
    events = [reticent.Gaussian(noise_multiplier=noise * share) for share in shares]
    lost = reticent.epsilon(events, DELTA)
    figure = (
        f"the account says ε = {stated:.2f}; a person with {RECORDS} records has lost {lost:.2f}"
    )
    return Outcome(lost > 1.01 * stated, figure + refusal[:90], refused=bool(refusal))
