"""What a program has around it: its project, its data, its processes; nothing of the user's is touched."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from torchlint.verify import remains
from torchlint.verify.measure import Pool, Session, Settings
from torchlint.verify.processes import Failure, Nurseries, Process
from torchlint.verify.results import ORIGINAL, Agreement, Machine, Variant
from torchlint.verify.subjects import Script, module_file
from torchlint.verify.worker.copies import Imports, copied
from torchlint.verify.workspace import Workspace

STEPS = """
import torch

parameter = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([parameter], lr=0.1)


def step(x=1.0):
    optimizer.zero_grad()
    (parameter.sum() * x).backward()
    optimizer.step()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a user's project, with others beside it."""
    folder = tmp_path / "home" / "project"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    return folder


@pytest.fixture
def examine(project: Path, scratch: Path, nurseries: Nurseries) -> Callable[..., dict[str, Any]]:
    """Examines a script of the project once."""

    def run(
        text: str,
        name: str = "train.py",
        arguments: tuple[str, ...] = (),
        links: tuple[str, ...] = (),
        entry: str = "",
        *,
        copied: bool = True,
    ) -> dict[str, Any]:
        script = project / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(text, encoding="utf-8")
        workspace = Workspace(script, Path(tempfile.mkdtemp(dir=scratch)), links=links)
        job = Script(workspace, arguments, device="cpu", entry=entry).job(ORIGINAL, "examine")
        nursery = nurseries.get(0) if copied else None
        with Process(job, Path(job.scratch) / "output.log", nursery=nursery) as process:
            process.run(trace=str(scratch / "trace.pt"), role="reference")
            return process.examined(120)

    return run


def gone(folder: Path, seconds: float = 30) -> bool:
    """Whether no process of a run in ``folder`` is left after a while."""
    deadline = time.monotonic() + seconds
    while remains.running(str(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not remains.running(str(folder))


# --- the project ----------------------------------------------------------------------------------------

DATA = """
from pathlib import Path, PurePosixPath


class Numbers:
    def __len__(self):
        return 64

    def __getitem__(self, index):
        Path(__file__).with_name("seen.txt").write_text("by a worker")
        return float(index)
"""
LOADED = """
import os

from numbers_of import Numbers
from torch.utils.data import DataLoader

assert (os.environ["MPLBACKEND"], os.environ["WANDB_MODE"]) == ("Agg", "offline")
if __name__ == "__main__":
    for _ in range(4):
        for x in DataLoader(Numbers(), batch_size=4, num_workers=1, multiprocessing_context="METHOD"):
            step(x.sum())
        break
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_loader_workers_import_the_copy_of_a_project_that_is_on_the_path(
    method: str, project: Path, examine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src").mkdir()
    (project / "src" / "numbers_of.py").write_text(DATA, encoding="utf-8")
    monkeypatch.chdir(project)
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{'src' if method == 'fork' else project / 'src'}")
    monkeypatch.setenv("MPLBACKEND", "TkAgg")
    monkeypatch.setenv("WANDB_MODE", "online")
    # The nursery of all tests has been started with another path.
    found = examine(STEPS + LOADED.replace("METHOD", method), "scripts/train.py", copied=False)
    assert found["found_by"] == "optimizer steps"
    assert found["modules"] == ["src/numbers_of.py"]
    assert [path.name for path in (project / "src").iterdir()] == ["numbers_of.py"]


def test_a_project_that_is_installed_as_editable_is_imported_from_the_copy(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, copy = project / "src" / "package_of_a_user", tmp_path / "copy" / "src" / "package_of_a_user"
    for folder in (original, copy):
        (folder / "part").mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "module.py").touch()

    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """As the finders do that editable installs bring."""
        if name != "package_of_a_user":
            return None
        return importlib.util.spec_from_file_location(
            name, original / "__init__.py", submodule_search_locations=[str(original)]
        )

    finders = [PathFinder, SimpleNamespace(find_spec=find_spec)]
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.setattr(sys, "path", [str(original.parent), str(project / ".venv"), "/elsewhere"])
    (project / ".venv").mkdir()
    imports = Imports(project, tmp_path / "copy")
    imports.install()
    assert sys.path == [str(copy.parent), str(project / ".venv"), "/elsewhere"]
    sys.path.remove(str(copy.parent))
    found = imports.find_spec("package_of_a_user")
    assert found is not None and found.origin == str(copy / "__init__.py")
    assert found.submodule_search_locations == [str(copy)]
    assert sys.path[-1] == str(copy.parent), "for processes that are spawned"
    package = importlib.util.module_from_spec(found)
    package.__path__ = [str(original)]
    monkeypatch.setitem(sys.modules, found.name, package)
    inner = imports.find_spec("package_of_a_user.part", [str(original)])
    assert inner is not None and list(inner.submodule_search_locations or ()) == [str(copy / "part")]
    assert imports.find_spec("package_of_nobody") is None


def test_a_script_with_relative_imports_runs_as_a_module(project: Path, examine: Any) -> None:
    for name, text in (
        ("models/__init__.py", "from .parts.steps import step\n"),
        ("models/parts/__init__.py", ""),
        ("models/parts/steps.py", STEPS),
        ("models/tools/__init__.py", ""),
    ):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    text = "from .. import step\n\nassert __name__ == '__main__'\nfor _ in range(9):\n    step()\n"
    found = examine(text, "models/tools/train.py")
    assert (found["found_by"], found["steps"], found["ended"]) == ("optimizer steps", 9, True)
    parts = ["models/__init__.py", "models/parts/__init__.py", "models/parts/steps.py"]
    assert found["modules"] == [*parts, "models/tools/__init__.py"]


def test_the_function_of_a_module_of_the_project_is_an_entry(project: Path, examine: Any) -> None:
    (project / "steps.py").write_text(STEPS, encoding="utf-8")
    found = examine("raise SystemExit('not to be run')\n", entry="steps:step")
    assert found["found_by"] == "calls of step()"


# --- data -----------------------------------------------------------------------------------------------


def test_data_beside_the_project_is_found_once_it_is_linked(project: Path, examine: Any) -> None:
    data = project.parent / "data" / "sets"
    data.mkdir(parents=True)
    (data / "a.txt").write_text("1 2 3", encoding="utf-8")
    reading = "from pathlib import Path\n\nopen(Path(__file__).parents[1] / 'data' / 'sets' / 'a.txt')\n"
    text = f"{STEPS}\n{reading}step()\n"
    with pytest.raises(Failure) as failure:
        examine(text)
    assert f"No such file or directory: '{data / 'a.txt'}'" in failure.value.reason
    assert f"outside the project, which the program runs a copy of; try `--link {data.parent}`" in (
        failure.value.reason
    )
    assert examine(text, links=(str(data.parent),))["ended"]


def test_a_linked_folder_is_not_copied(project: Path, tmp_path: Path) -> None:
    (project / "train.py").touch()
    (project / "large" / "images").mkdir(parents=True)
    (project / "large" / "images" / "a.bin").write_bytes(bytes(3 << 20))
    (project / "large" / "list.txt").touch()
    with pytest.raises(ValueError, match=r"large/images \(3 MB\).*`--link large/images`"):
        Workspace(project / "train.py", tmp_path, limit=1 << 20)
    workspace = Workspace(
        project / "train.py", tmp_path, links=[str(project / "large" / "images")], limit=1 << 20
    )
    copy = workspace.copy({}).project
    assert (copy / "large" / "images").is_symlink()
    assert (copy / "large" / "images" / "a.bin").stat().st_size == 3 << 20
    assert (copy / "large" / "list.txt").exists() and not (copy / "large").is_symlink()
    with pytest.raises(ValueError, match="contains the project itself"):
        Workspace(project / "train.py", tmp_path, links=[str(project.parent)])


def test_links_within_a_project_are_copied_unless_they_lead_upwards(project: Path, scratch: Path) -> None:
    (project / "train.py").touch()
    (project / "runs" / "third").mkdir(parents=True)
    (project / "runs" / "third" / "log.txt").touch()
    (project / "runs" / "latest").symlink_to("third")
    (project / "runs" / "best").symlink_to("third")
    copy = Workspace(project / "train.py", scratch).copy({}).project
    assert (copy / "runs" / "latest" / "log.txt").exists() and not (copy / "runs" / "latest").is_symlink()
    (project / "runs" / "third" / "all").symlink_to("..")
    with pytest.raises(ValueError, match=r"all links to a parent folder; `--link .*/all` skips it"):
        Workspace(project / "train.py", scratch)
    Workspace(
        project / "train.py",
        scratch,
        links=[str(project / "runs" / name) for name in ("third", "latest", "best")],
    )


def test_a_program_can_ask_for_its_commit_and_make_one_without_the_user_noticing(
    project: Path, scratch: Path
) -> None:
    def git(folder: Path, *arguments: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        command = ["git", *who, "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    (project / "train.py").touch()
    git(project.parent, "init", "-q")
    git(project.parent, "add", ".")
    git(project.parent, "commit", "-qm", "first")
    commit = git(project, "rev-parse", "HEAD")
    copy = Workspace(project / "train.py", scratch).copy({}).project
    assert git(copy, "rev-parse", "HEAD") == commit
    assert git(copy, "status", "--porcelain") == ""
    (copy / "train.py").write_text("print()", encoding="utf-8")
    git(copy, "commit", "-qam", "second")
    assert git(copy, "rev-parse", "HEAD^") == commit == git(project, "rev-parse", "HEAD")
    assert git(project, "status", "--porcelain") == ""


def test_arguments_that_lead_into_the_project_lead_into_the_copy(project: Path, tmp_path: Path) -> None:
    (project / "train.py").touch()
    (project / ".venv").mkdir()
    (tmp_path / "link").symlink_to(project)
    workspace = Workspace(project / "train.py", tmp_path)
    given = (
        f"--out={project}/new",
        f"{tmp_path}/link/train.py",
        f"{project}/.venv",
        "--name=a=/b",
        "train.py",
        "/usr",
    )
    job = Script(workspace, given, device="cpu").job(ORIGINAL, "time")
    assert job.arguments == (f"--out={job.project}/new", f"{job.project}/train.py", *given[2:])
    assert copied(str(project), project, Path(job.project)) == job.project


def test_what_a_program_writes_into_the_users_folder_is_told(project: Path, tmp_path: Path) -> None:
    (project / "train.py").touch()
    (project / "kept.txt").touch()
    script = Script(Workspace(project / "train.py", tmp_path), device="cpu")
    assert script.remarks() == []
    for name in ("train.py", "a.pt", "b.pt", "c.pt"):
        (project / name).write_text("written", encoding="utf-8")
    (told,) = script.remarks()
    assert told.startswith(f"a.pt, b.pt, c.pt and 1 more in {project} changed while the program ran")


# --- processes ------------------------------------------------------------------------------------------

ESCAPING = """
import os, subprocess

subprocess.Popen(["sleep", "600"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        time.sleep(600)
    os._exit(0)
os.wait()
os.lseek(1, 1 << 36, os.SEEK_SET)
raise ValueError("no luck")
"""


def test_processes_with_sessions_of_their_own_end_with_the_program(examine: Any, scratch: Path) -> None:
    with pytest.raises(Failure, match=r"ValueError: no luck\nThe last lines") as failure:
        examine(ESCAPING)
    # What it printed is a file of 64 GiB, most of it a hole; the last lines are the program's own.
    assert "runpy" not in failure.value.reason
    assert len(failure.value.reason) < 1000
    assert gone(scratch, 0)


KILLED = """
import os, signal, sys
from pathlib import Path, PurePosixPath
from torchlint.verify.processes import Process
from torchlint.verify.scratch import Scratch
from torchlint.verify.subjects import Script, module_file
from torchlint.verify.workspace import Workspace

with Scratch() as folder:
    print(folder, flush=True)
    job = Script(Workspace(Path("train.py"), folder), device="cpu").job("original", "time")
    with Process(job, folder / "log.txt") as process:
        process.run(steps_by="optimizer")
        process.ready(120)
        print("paused", flush=True)
        sys.stdin.read()
"""


def test_nothing_is_left_when_torchlint_itself_is_killed(project: Path) -> None:
    loop = "for x in DataLoader(range(10**6), num_workers=2):\n    step(x)\n"
    text = f"{STEPS}\nfrom torch.utils.data import DataLoader\n\n{loop}"
    (project / "train.py").write_text(text, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        assert run.stdout.readline() == "paused\n"
        assert len(remains.running(str(folder))) == 3
        run.send_signal(signal.SIGKILL)
    assert gone(folder)
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists()


# --- results --------------------------------------------------------------------------------------------


def test_a_stream_that_moved_is_told_from_a_changed_result(
    project: Path, scratch: Path, nurseries: Nurseries
) -> None:
    text = f"{STEPS}\nwhile True:\n    step(torch.rand(1000).mean())\n"
    (project / "train.py").write_text(text, encoding="utf-8")
    workspace = Workspace(project / "train.py", scratch)
    script = Script(workspace, device="cpu")
    elsewhere = text.replace("while", "other = torch.Generator().manual_seed(7)\nwhile").replace(
        "1000)", "1000, generator=other)"
    )
    script.contents = {
        name: {workspace.relative: changed.encode()}
        for name, changed in (("moved", elsewhere), ("changed", elsewhere.replace("mean()", "mean() * 9")))
    }
    with Pool(script, nurseries) as pool:
        session = Session(pool, Settings(device="cpu"), Machine("cpu"), scratch)
        session.examine_original()
        session.examine([Variant("moved"), Variant("changed")])
    found = {name: item.sameness for name, item in session.examinations.items()}
    assert found["moved"].agreement is Agreement.STREAM_MOVED, found["moved"]
    assert "another generator" in found["moved"].reason


MODULE = """
import sys
import torch
from other import helper
from .parts import model

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("as", __name__, __package__, sys.argv[1:], helper.__file__)
while True:
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("name", "file"), [("pkg.train", "train.py"), ("pkg", "__main__.py")])
def test_a_module_is_run_as_python_m_does(
    name: str, file: str, tmp_path: Path, scratch: Path, nurseries: Nurseries
) -> None:
    texts = {f"pkg/{file}": MODULE, "pkg/parts.py": "import torch\nmodel = torch.nn.Linear(4, 1)\n"}
    texts |= {"pkg/__init__.py": "", "other/__init__.py": "", "other/helper.py": ""}
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert module_file("pkg.missing", [tmp_path]) is None
    found = module_file(name, [tmp_path / "other", tmp_path])
    assert found == (tmp_path / "pkg" / file, tmp_path)
    workspace = Workspace(found[0], scratch, root=found[1])
    script = Script(
        workspace, ["--epochs", "3"], device="cpu", module=name, search=found[1], directory=tmp_path
    )
    made = script.job(ORIGINAL, "time")
    with Process(made, tmp_path / "log.txt", nursery=nurseries.get(0)) as process:
        process.run()
        process.ready(60)
    said = (tmp_path / "log.txt").read_text()
    assert f"as __main__ pkg ['--epochs', '3'] {made.project}/other/helper.py" in said
    assert set(script.sources(["pkg/parts.py"])) == {
        PurePosixPath(f"pkg/{file}"),
        PurePosixPath("pkg/parts.py"),
    }


UNSTEADY = """
import os
import torch
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = 0
while True:
    step += 1
    optimizer.zero_grad()
    # From step 3 on the program differs from itself, by an amount that differs from run to run.
    noise = SIZE * (step > 2) * int.from_bytes(os.urandom(1), "big") / 255
    (model(torch.ones(4, 8)).square().mean() + 1 + noise).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("size", "changes"),
    [
        (
            "0.3",
            {
                "noise).backward()": Agreement.CLOSE,
                "noise + 9 * (step > 2)).backward()": Agreement.DIFFERENT,
                "noise + 0.3 * (step == 1)).backward()": Agreement.DIFFERENT,
            },
        ),
        ("0.0", {"noise).backward()": Agreement.IDENTICAL}),
    ],
    ids=["irreproducible", "reproducible"],
)
def test_a_fix_is_only_rejected_for_more_than_the_original_differs_from_itself(
    size: str, changes: dict[str, Agreement], project: Path, scratch: Path, nurseries: Nurseries
) -> None:
    text = UNSTEADY.replace("SIZE", size)
    (project / "train.py").write_text(text, encoding="utf-8")
    workspace = Workspace(project / "train.py", scratch)
    script = Script(workspace, device="cpu")
    script.contents = {
        change: {workspace.relative: text.replace("noise).backward()", change).encode()} for change in changes
    }
    with Pool(script, nurseries) as pool:
        session = Session(pool, Settings(device="cpu", budget=3000), Machine("cpu"), scratch)
        session.examine_original()
        session.examine([Variant(change) for change in changes])
    found = {change: session.examinations[change].sameness.agreement for change in changes}
    assert found == changes


CHECKPOINTED = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)) for _ in range(3))
first = nn.Linear(8, 8)
optimizer = torch.optim.SGD([*first.parameters(), *blocks.parameters()], lr=0.1)
while True:
    x = first(torch.ones(4, 8))
    for block in blocks:
        x = x + checkpoint(block, x, use_reentrant=True)
    optimizer.zero_grad()
    x.square().mean().backward()
    optimizer.step()
"""


def test_what_a_checkpoint_computes_again_is_no_result(
    project: Path, scratch: Path, nurseries: Nurseries
) -> None:
    (project / "train.py").write_text(CHECKPOINTED, encoding="utf-8")
    workspace = Workspace(project / "train.py", scratch)
    script = Script(workspace, device="cpu")
    other = CHECKPOINTED.replace("use_reentrant=True", "use_reentrant=False")
    script.contents = {"other": {workspace.relative: other.encode()}}
    with Pool(script, nurseries) as pool:
        session = Session(pool, Settings(device="cpu"), Machine("cpu"), scratch)
        session.examine_original()
        session.examine([Variant("other")])
    found = session.examinations["other"].sameness
    assert found.agreement is Agreement.IDENTICAL, found
