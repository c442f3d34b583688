"""The one command for all benchmarks: what it finds, what it writes, how it ends."""

from datetime import UTC, datetime

import pytest

from benchmarks import __main__ as benchmarks


def test_every_benchmark_says_what_it_asks_and_has_a_quick_mode():
    found = benchmarks.scripts()
    assert len(found) >= 10
    for path in found.values():
        assert len(benchmarks.title(path)) > 10, path.name
        assert "--quick" in path.read_text(encoding="utf-8"), path.name


def test_the_page_has_what_was_printed_and_failure_is_told(tmp_path, monkeypatch, capsys):
    (tmp_path / "good.py").write_text('"""How good? `good.py`"""\nprint("7 ± 1")\n')
    (tmp_path / "bad.py").write_text('"""How bad?"""\nraise SystemExit(3)\n')
    monkeypatch.setattr(benchmarks, "HERE", tmp_path)
    assert benchmarks.main(["good"]) == 0
    assert "7 ± 1" in capsys.readouterr().out
    assert benchmarks.main(["--quick", "--out", str(tmp_path / "page.md")]) == 1
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (
        "## good\n\nHow good?\n\n`python benchmarks/good.py --quick`\n\n```text\n7 ± 1\n```" in text
    )
    assert [line.split("|")[3].strip() for line in text.split("\n") if line.startswith("| [")] == [
        "badly",
        "well",
    ]
    with pytest.raises(SystemExit):
        benchmarks.main(["speed"])
    assert "there is no benchmark 'speed'" in capsys.readouterr().err


def test_cpu_time_is_that_of_the_benchmark(tmp_path, monkeypatch):
    (tmp_path / "busy.py").write_text('"""How busy?"""\nsum(i * i for i in range(2_000_000))\n')
    monkeypatch.setattr(benchmarks, "HERE", tmp_path)
    one = benchmarks.run(benchmarks.scripts()["busy"], quick=False)
    assert one.seconds > 0.05
    assert "0 s" in benchmarks.page([one], datetime.now(UTC)) or one.seconds >= 0.5
