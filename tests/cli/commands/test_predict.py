"""``reticent predict``: each line of a file, in its order."""

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reticent
from reticent.cli.commands import predict as predicting
from tests.support.prose import says


@pytest.fixture(scope="module")
def model(people_csv, tmp_path_factory):
    bounds = reticent.Bounds(x={"age": (0, 110), "height": (40, 220)}, y={"weight": (2, 150)})
    model = reticent.GPRegressor(
        bounds=bounds, epsilon=8, delta=1e-5, basis=12, stages=2, learn_kernel=False
    )
    path = tmp_path_factory.mktemp("model") / "m.reticent"
    model.fit(reticent.scan(people_csv)).save(path)
    return model, path


@pytest.fixture
def predict(run, model, tmp_path):
    def call(data, *options, file=model[1]):
        answer = run("predict", file, data, "--out", tmp_path / "p.csv", *options)
        return answer, tmp_path / "p.csv"

    return call


def written(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def wanted(model, points):
    mean, std = model.predict(points, return_std=True)
    return np.column_stack([mean, std, np.sqrt(sum(model.variance_parts(points).values()))])


def results(rows, output="weight"):
    return np.array(
        [
            [float(row[output + name] or "nan") for name in ("", "_std", "_output_std")]
            for row in rows
        ]
    )


def near(wanted):
    """Written to a thousandth of the standard deviation."""
    return pytest.approx(wanted, abs=1e-3 * wanted[..., 1].max())


def points_for(n):
    random = np.random.default_rng(1)
    return random.uniform([0, 40], [110, 220], (n, 2))


def test_a_line_break_inside_quotes_is_refused_as_fit_reads_it(predict, tmp_path):
    """One line is one record, in ``fit`` and in ``predict``."""
    (tmp_path / "new.csv").write_text('height,name,age\n170,"a\nb",30\n')
    answer, out = predict(tmp_path / "new.csv")
    assert answer.code == 5
    assert "line 1 " in answer.err
    assert not out.exists()


def test_rows_keep_their_order_across_blocks_quotes_and_gaps(predict, model, tmp_path, monkeypatch):
    monkeypatch.setattr(predicting, "_ROWS", 7)
    points = points_for(40)
    points[3, 0], points[11] = np.nan, np.nan
    lines = ["height,name,age"]
    for i, (age, height) in enumerate(points.tolist()):
        quote = '"' if i % 3 == 0 else ""
        tall, old = (
            "" if value != value else f"{quote}{value!r}{quote}" for value in (height, age)
        )
        name = '"a ""b"", c"' if i % 5 == 0 else "é"
        lines.append(f"{tall},{name},{old}")
    (tmp_path / "new.csv").write_text(
        "\r\n".join(lines[:20]) + "\n\n" + "\n".join(lines[20:]), encoding="latin-1"
    )
    answer, out = predict(tmp_path / "new.csv")
    assert answer.code == 0, answer.err
    rows = written(out)
    assert list(rows[0]) == ["age", "height", "weight", "weight_std", "weight_output_std"]
    assert [(row["age"], row["height"]) for row in rows] == [
        tuple("" if value != value else repr(value) for value in point) for point in points.tolist()
    ]
    whole = ~np.isnan(points).any(axis=1)
    assert results(rows)[whole] == near(wanted(model[0], points[whole]))
    assert np.isnan(results(rows)[~whole]).all()
    said = " ".join(answer.out.split())
    assert says(said, "40 lines")
    assert says(said, "lack", "no prediction: 2.")
    assert re.search(r"reticent report \S+ --out \S+\.html", said)


def test_an_output_spreads_more_than_the_function(predict, people_csv, model):
    rows = results(written(predict(people_csv)[1]))
    assert len(rows) == 500
    assert rows[:, 2] ** 2 - rows[:, 1] ** 2 == pytest.approx(
        np.full(500, model[0].noise_ ** 2), rel=1e-2
    )


def test_parquet_and_its_order(predict, model, tmp_path, monkeypatch):
    monkeypatch.setattr(predicting, "_ROWS", 7)
    points = points_for(50)
    ages = pa.array(points[:, 0], mask=np.arange(50) == 4)
    pq.write_table(pa.table({"height": points[:, 1], "age": ages}), tmp_path / "new.parquet")
    answer, out = predict(tmp_path / "new.parquet")
    assert answer.code == 0, answer.err
    known = np.arange(50) != 4
    assert results(written(out))[known] == near(wanted(model[0], points[known]))
    assert np.isnan(results(written(out))[4]).all()


def test_what_is_said_to_people_and_machines(predict, people_csv, tmp_path):
    answer, out = predict(people_csv)
    text = " ".join(answer.out.split())
    assert "Predicted weight for 500 lines" in text
    assert says(text, "inputs are not protected")
    assert "missing" not in text
    assert "NOT PRIVATE" not in text
    out.unlink()
    (tmp_path / "new.csv").write_text("age,height\n20,30\n20,\n200,100\n")
    about = json.loads(predict(tmp_path / "new.csv", "--json")[0].out)
    assert about == {
        "model": "GPRegressor",
        "private": True,
        "outputs": ["weight"],
        "records": 3,
        "missing": 1,
        "not_predicted": 1,
        "lacking": {"height": 1},
        "outside": 2,
        "notes": [
            "height: 1 without a value",
            "age: 1 outside 0:110",
            "height: 1 outside 40:220",
        ],
        "inputs": ["age", "height"],
        "columns": ["age", "height", "weight", "weight_std", "weight_output_std"],
        "out": str(out),
    }
    out.unlink()
    answer, _ = predict(people_csv, "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_models_without_names_take_columns_by_position(predict, tmp_path):
    x = points_for(200)
    bounds = reticent.Bounds(x=[(0, 110), (40, 220)], y=(0, 1))
    model = reticent.GPRegressor(
        bounds=bounds, epsilon=1, delta=1e-4, basis=4, stages=1, random_state=1
    )
    model.fit(x, np.zeros(200)).save(tmp_path / "n.reticent")
    (tmp_path / "new.csv").write_text("output,b\n20,130\n")
    answer, out = predict(tmp_path / "new.csv", file=tmp_path / "n.reticent")
    assert answer.code == 0, answer.err
    assert "NOT PRIVATE" in answer.out
    (row,) = written(out)
    assert list(row) == ["output", "b", "predicted_output", "output_std", "output_output_std"]
    assert float(row["predicted_output"]) == pytest.approx(model.predict([[20, 130]])[0], rel=1e-2)


def test_digits_end_at_a_thousandth_of_the_standard_deviation(predict, people_csv, model):
    for row in written(predict(people_csv)[1]):
        std = float(row["weight_std"])
        places = {
            len(row[name].partition(".")[2])
            for name in ("weight", "weight_std", "weight_output_std")
        }
        assert len(places) == 1
        assert 0.999e-4 * std < 10.0 ** -places.pop() <= 1e-3 * std  # 9.9997 is written as 10.000


def test_several_outputs_have_columns_each(run, people_csv, tmp_path):
    outputs = ("--y", "weight=2:150", "--y", "systolic=60:220")
    promise = ("--epsilon", 8, "--delta", 1e-5, "--basis", 5, "--out", tmp_path / "m.reticent")
    answer = run("fit", "gp", people_csv, "--x", "age=0:110", *outputs, *promise)
    assert answer.code == 0, answer.err
    model = reticent.load(tmp_path / "m.reticent")
    assert model.basis == 5
    answer = run("predict", tmp_path / "m.reticent", people_csv, "--out", tmp_path / "p.csv")
    assert says(" ".join(answer.out.split()), "weight", "systolic", "500 lines")
    rows = written(tmp_path / "p.csv")
    assert list(rows[0])[1:] == [
        name + part for name in ("weight", "systolic") for part in ("", "_std", "_output_std")
    ]
    ages = np.array([[float(row["age"])] for row in rows])
    mean, std = model.predict(ages, return_std=True)
    for j, name in enumerate(("weight", "systolic")):
        assert results(rows, name)[:, :2] == near(np.column_stack([mean[:, j], std[:, j]]))


def test_models_that_do_not_predict_are_refused(predict, people_csv, tmp_path):
    mean = reticent.PrivateMean(bounds=reticent.Bounds(x={"age": (0, 110)}), epsilon=1, delta=1e-5)
    mean.fit(reticent.scan(people_csv)).save(tmp_path / "mean.reticent")
    answer, out = predict(people_csv, file=tmp_path / "mean.reticent")
    assert answer.code == 2
    assert says(answer.err, "PrivateMean", "single records")
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.csv", None, "absent.csv"),
        ("odd.xlsx", "age,height\n1,2\n", "odd.xlsx"),
        ("columns.csv", "age,hight\n1,2\n", "no column 'height'"),
        ("empty.csv", "age,height\n", "no records"),
        ("blank.csv", "age,height\n\n  \n", "no records"),
        (
            "short.csv",
            "age,height\n1,2\n\n3\n",
            "line 3 below the header has 1 fields instead of 2",
        ),
        (
            "long.csv",
            "age,height\n" + "1" * 200_000 + ",2\n",
            "line 1 below the header cannot be read",
        ),
        ("damaged.parquet", "age", "damaged.parquet"),
    ],
)
def test_bad_files_are_5_and_leave_nothing(predict, tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_text(content)
    answer, _ = predict(tmp_path / name)
    assert answer.code == 5, answer.err
    assert words in answer.err
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("p.csv")] == []


def test_a_column_of_lists_and_a_bad_model_are_5(predict, people_csv, tmp_path):
    pq.write_table(pa.table({"age": [["old"]], "height": [1.0]}), tmp_path / "text.parquet")
    assert predict(tmp_path / "text.parquet")[0].code == 5
    assert predict(people_csv, file=tmp_path / "absent.reticent")[0].code == 5


def test_an_existing_file_is_never_replaced(predict, people_csv, tmp_path):
    (tmp_path / "p.csv").write_text("mine")
    answer, out = predict(people_csv)
    assert answer.code == 5
    assert "exists already" in answer.err
    assert out.read_text() == "mine"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A model of words, dates and a number that may be missing, from a semicolon file."""
    folder = tmp_path_factory.mktemp("mixed")
    random = np.random.default_rng(2)
    lines = ["sex;visit;dose;effect"]
    for _ in range(400):
        sex = random.choice(["F", "M"])
        dose = random.uniform(0, 10)
        shown = f"{dose:.2f}".replace(".", ",") if random.random() < 0.9 else ""
        day = random.integers(1, 28)
        lines.append(f"{sex};{day:02}.03.2020;{shown};{dose + 10 * (sex == 'M'):.1f}")
    (folder / "d.csv").write_text("\n".join(lines), encoding="utf-8")
    bounds = reticent.Bounds(
        x={
            "sex": ["F", "M"],
            "visit": reticent.Date("2020-03-01", "2020-03-31", format="%d.%m.%Y"),
            "dose": reticent.Number(0, 10, keep_missing=True),
        },
        y={"effect": (0, 20)},
    )
    model = reticent.GPRegressor(
        bounds=bounds, epsilon=50, delta=1e-5, basis=20, stages=1, random_state=1
    )
    model.fit(reticent.scan(folder / "d.csv")).save(folder / "m.reticent")
    return folder / "m.reticent"


def test_words_dates_and_decimal_commas_are_read_as_in_a_fit(predict, mixed, tmp_path):
    (tmp_path / "new.csv").write_text(
        "dose;sex;visit\n2,5;F;03.03.2020\n2,5;M;03.03.2020\n;M;31.03.2020\n1;X;03.03.2020\n"
        "1;F;2020-03-03\n"
    )
    answer, out = predict(tmp_path / "new.csv", file=mixed)
    assert answer.code == 0, answer.err
    rows = written(out)
    assert [(row["sex"], row["visit"], row["dose"]) for row in rows[:2]] == [
        ("F", "03.03.2020", "2.5"),
        ("M", "03.03.2020", "2.5"),
    ]
    found = results(rows, "effect")[:, 0]
    assert found[1] - found[0] > 3  # two words are two values
    assert np.isnan(found).tolist() == [False, False, False, True, False]  # ISO is read, too
    assert rows[3]["sex"] == "X"
    said = " ".join(answer.out.split())
    assert "no prediction: 1." in said
    assert "sex: 1 without a value, not known: 'X' (known: 'F', 'M')." in said


def test_predictions_for_a_spreadsheet_with_semicolons_and_decimal_commas(predict, mixed, tmp_path):
    (tmp_path / "new.csv").write_text("dose;sex;visit\n2,5;F;03.03.2020\n7,5;M;04.03.2020\n")
    answer, out = predict(tmp_path / "new.csv", file=mixed)
    assert answer.code == 0, answer.err
    plain = written(out)
    out.unlink()
    signs = ("--out-separator", ";", "--out-decimal", ",")
    answer, out = predict(tmp_path / "new.csv", *signs, file=mixed)
    assert answer.code == 0, answer.err
    header, *lines = out.read_text().splitlines()
    assert header.split(";") == list(plain[0])
    for line, row in zip(lines, plain, strict=True):
        numbers = {name: cell for name, cell in row.items() if name not in ("sex", "visit")}
        cells = dict(zip(header.split(";"), line.split(";"), strict=True))
        assert cells["visit"] == row["visit"]  # a date has points
        for name, cell in numbers.items():
            assert cells[name] == cell.replace(".", ",")
    for wrong in (["--out-decimal", ","], ["--out-separator", "x"], ["--out-decimal", "x"]):
        out.unlink(missing_ok=True)
        answer, out = predict(tmp_path / "new.csv", *wrong, file=mixed)
        assert answer.code == 2
        assert "what is written" in answer.err.lower().replace("\n ", "")
        assert not out.exists()


def test_where_no_line_can_be_predicted_the_words_are_named(predict, mixed, tmp_path):
    (tmp_path / "new.csv").write_text("dose;sex;visit\n1;w;03.03.2020\n2;m;03.03.2020\n")
    answer, out = predict(tmp_path / "new.csv", file=mixed)
    assert answer.code == 5
    assert says(answer.err, "sex: 2 without a value, not known: 'w', 'm' (known: 'F', 'M')")
    assert not out.exists()


def test_values_outside_are_counted_by_column_and_codes_are_named(predict, mixed, tmp_path):
    (tmp_path / "new.csv").write_text(
        "dose;sex;visit\n999;F;03.03.2020\n999;M;03.03.2020\n11;M;03.03.2020\n"
    )
    answer, _ = predict(tmp_path / "new.csv", file=mixed)
    assert answer.code == 0, answer.err
    said = " ".join(answer.out.split())
    assert "dose: 3 outside 0:10; 999 occurs 2 times: a code for missing?" in said


def test_a_wrong_separator_and_a_spreadsheet_are_refused(predict, mixed, run, tmp_path):
    (tmp_path / "new.csv").write_text("dose;sex;visit\n1;F;03.03.2020\n")
    answer, _ = predict(tmp_path / "new.csv", "--separator", ",", file=mixed)
    assert answer.code == 5
    assert "Leave out --separator" in " ".join(answer.err.split())
    out = tmp_path / "p.xlsx"
    answer = run("predict", mixed, tmp_path / "new.csv", "--out", out)
    assert answer.code == 2
    assert says(answer.err, "written as csv")
    assert not out.exists()


def test_the_same_table_in_parquet_is_predicted_the_same(predict, mixed, tmp_path):
    (tmp_path / "new.csv").write_text("sex;visit;dose\nF;03.03.2020;2,5\nM;;\n")
    table = {"sex": ["F", "M"], "visit": ["03.03.2020", None], "dose": [2.5, None]}
    pq.write_table(pa.table(table), tmp_path / "new.parquet")
    _, out = predict(tmp_path / "new.csv", file=mixed)
    first = results(written(out), "effect")
    out.unlink()
    _, out = predict(tmp_path / "new.parquet", file=mixed)
    assert np.array_equal(first, results(written(out), "effect"), equal_nan=True)
    assert np.isnan(first[1]).all()
