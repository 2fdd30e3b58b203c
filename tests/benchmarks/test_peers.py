"""The comparison with other linters: what is run, in which order, and that no failure is hidden."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import processes
from benchmarks.peers import contenders, environments, rounds, trees
from benchmarks.peers.contenders import Contender
from benchmarks.peers.rounds import Plan, Series
from benchmarks.peers.trees import Tree

PLAN = Plan(rounds=2, slow_rounds=1, slow=60, limit=20)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    folder = tmp_path / "tree"
    folder.mkdir()
    return Tree("tree-1.0", folder, 1, 10)


def series(code: str, tree: Tree, **other: object) -> list[Series]:
    """All ways to run a program of Python that stands for a linter."""
    contender = Contender("tool", ("{python}", "-c", code, "{cache}"), **other)  # type: ignore[arg-type]
    return rounds.series_of(contender, tree, Path(sys.executable))


def measure(all_series: list[Series], tmp_path: Path, plan: Plan = PLAN) -> list[str]:
    told: list[str] = []
    rounds.measure(
        all_series, plan, tmp_path, lambda one, number: told.append(f"{number} {one.processes} {one.state}")
    )
    return told


def test_every_peer_is_pinned() -> None:
    assert set(environments.pins()) == {peer.name for peer in contenders.PEERS}


def test_a_peer_without_one_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "PINS", tmp_path / "pins.txt")
    environments.PINS.write_text("# comment\nruff>=1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="ruff>=1 is not pinned"):
        environments.pins()


def test_a_tree_has_the_files_that_mention_torch(tmp_path: Path) -> None:
    package = tmp_path / "package-1.0"
    for name, text in {
        "a.py": "import torch\n",
        "b.py": "import os\n",
        "c/d.py": "# torch\n",
        "e.py": "torch",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    paths = trees.mentioning(package)
    tree = trees.copied(package, paths, 2, tmp_path / "copy")
    assert [path.name for path in paths] == ["a.py", "d.py", "e.py"]
    assert (tree.files, tree.bytes) == (2, 18)
    assert sorted(path.name for path in tree.folder.rglob("*.py")) == ["a.py", "e.py"]


def test_rounds_take_turns_forwards_and_backwards(tree: Tree, tmp_path: Path) -> None:
    found = series("pass", tree, several="two", caches=True)
    told = measure(found, tmp_path)
    ways = ["one cold", "one warm", "default cold", "default warm"]
    assert told == [f"0 {way}" for way in ways] + [f"1 {way}" for way in reversed(ways)]
    assert all(len(one.runs) == 2 and one.error is None for one in found)


def test_a_cold_run_has_an_empty_cache_and_a_warm_one_does_not(tree: Tree, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "path = Path(sys.argv[1]) / 'x'; print('\\n' * path.exists()); path.touch()"
    )
    cold, warm = series(code, tree, caches=True)
    measure([cold, warm], tmp_path)
    assert [run.lines for run in cold.runs] == [1, 1]
    assert [run.lines for run in warm.runs] == [2, 2]


def test_failures_are_kept_and_not_repeated(tree: Tree, tmp_path: Path) -> None:
    (broken,) = series("import sys; sys.exit('no such rule')", tree, finished=0)
    (stopped,) = series("import time; time.sleep(60)", tree)
    (absent,) = rounds.series_of(Contender("tool", ("{bin}/no-such-program",)), tree, Path(sys.executable))
    plan = Plan(rounds=2, slow_rounds=1, slow=60, limit=0.3)
    assert len(measure([stopped], tmp_path, plan)) == 1
    assert len(measure([broken, absent], tmp_path)) == 2
    assert broken.as_json()["error"] == "exit status 1: no such rule" and broken.runs == []
    assert stopped.error == "stopped after 0 s"
    assert absent.error is not None and "No such file" in absent.error


def test_what_is_slow_is_run_less_often(tree: Tree, tmp_path: Path) -> None:
    (slow,) = series("pass", tree)
    measure([slow], tmp_path, Plan(rounds=4, slow_rounds=2, slow=0, limit=20))
    assert len(slow.runs) == 2


def test_the_results_name_no_folder_of_this_machine(tree: Tree, tmp_path: Path) -> None:
    alone, usual = series("pass", tree, alone=("-j", "1"), alone_variables={"THREADS": "1"}, several="many")
    assert alone.as_json()["command"] == "THREADS=1 {python} -c pass {cache} -j 1"
    assert usual.as_json()["command"] == "{python} -c pass {cache}"
    assert usual.as_json()["several"] == "many" and alone.as_json()["several"] == ""
    assert alone.environment(tmp_path)["THREADS"] == "1" and "THREADS" not in usual.environment(tmp_path)


def test_the_time_of_all_processes_counts() -> None:
    """Of one that is waited for, and on Linux of one that is left behind."""
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    waited = processes.run([sys.executable, "-S", "-c", f"import os\nos.fork() and os.wait()\n{busy}"])
    assert waited.cpu >= 0.4 and waited.status == 0 and not waited.expired
    if sys.platform == "linux":
        left = processes.run([sys.executable, "-S", "-c", f"import os\nif os.fork(): os._exit(3)\n{busy}"])
        assert left.cpu >= 0.2 and left.status == 3


def test_the_memory_is_that_of_the_command() -> None:
    held = bytearray(64 << 20)  # what this process has is not counted
    usage = processes.run([sys.executable, "-I", "-S", "-c", "print('a')"])
    assert 1 < usage.memory < 64 < len(held) / 2**19 and (usage.lines, usage.told) == (1, "a")
