"""What is remembered of a project: edits in any order, and each warm answer beside a cold one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from torchlint import checker, reading, runner
from torchlint.cache import Cache
from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings, Options
from torchlint.project import index, program
from torchlint.project.layout import Layouts
from torchlint.project.project import Project
from torchlint.runner import Mode
from torchlint.store import Store

# Rules that ask for callers, values, meters, grad modes, losses and checkpoints in other files.
RULES = ("TL001", "TL201", "TL202", "TL301", "TL303", "TL401", "TL407")
# A rule that words of other files let through; where others are asked, more is noted of the files.
ALONE = ("TL407",)
NAMES = (*("a", "b", "c", "d", "report"), *("sub/__init__", "sub/d", "sub/report", "tests/test_a"))
MODULES = ("a", "b", "c", "d", "report", "sub", "sub.d", "sub.report", ".d", ".")

IMPORTS = (
    "from {other} import report",
    "from {other} import report, DEVICE",
    "from {other} import *",
    "from {other} import (\n    report,\n    Network,\n)",
    "from {other} \\\n    import report",
    "try:\n    from {other} import report\nexcept ImportError:\n    report = print",
)
PLAIN_IMPORTS = ("import {other}", "import {other}\nreport = {other}.report", "import {other} as report")
PIECES = (
    "def report(loss):\n    print(loss.item())\n",
    dedent("""\
    class report:
        def __init__(self):
            self.kept = []

        def update(self, loss):
            self.kept.append(loss)
    """),
    "DEVICE = 'cuda'\n",
    "__all__ = ['report']\n",
    dedent("""\
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)
            self.norm = nn.BatchNorm2d(8)

        def forward(self, images):
            return torch.softmax(self.norm(self.conv(images)).mean((2, 3)), 1)
    """),
    dedent("""\
    def train(loader, optimizer):
        model = Network()
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch.to(DEVICE)), torch.ones(8).to(DEVICE))
            loss.backward()
            optimizer.step()
            report(loss)
    """),
    dedent("""\
    def evaluate(model, loader):
        total = 0
        for batch in loader:
            total += report(model(batch.cuda()).mean())
        return total
    """),
    "def main(loader):\n    with torch.no_grad():\n        evaluate(Network(), loader)\n",
    "torch.save(Network().state_dict(), 'model.pt')\n",
)
# Edits without a word about imports, there and back.
TOGGLED = (
    ("for batch in loader:", "if batch := loader:"),
    ("print(loss.item())", "print(loss)"),
    ("def report(", "def reported("),
    ("class report:", "class reported:"),
    ("['report']", "['reported']"),
    ("DEVICE = 'cuda'", "DEVICE = 'cpu'"),
    ("DEVICE = ", "DEVICES = "),
    ("torch.no_grad()", "torch.enable_grad()"),
    ("torch.softmax(", "torch.relu("),
    ("report(loss)\n", "report.update(loss)\n"),
    ("torch.save(", "torch.ones("),
    ("cross_entropy(", "mse_loss("),
    ("nn\n", "nn\ndef broken(:\n"),
    ("nn\n", "nn\nreport = print\n"),
)


# Statements for the bodies of functions and classes, and comments with words that files are asked for.
INSERTED = (
    *("kept = 1", "DEVICE = 'cpu'", "report = None", "loss = loss.detach()", "self.kept = report"),
    *("torch.cuda.synchronize()", "getattr(report, 'update')", "'a remark'"),
)
REMARKS = ("# a remark", "# report.update(loss), backward", "# don't", "#", "", "    ")


HEAD = "import torch\nfrom torch import nn\n"
# Projects to begin with: callers, a package that hands names on, and one that hides a module of its own.
PROJECTS: tuple[dict[str, str], ...] = (
    {
        "report": HEAD + PIECES[0] + PIECES[2],
        "a": f"{HEAD}from report import DEVICE, report\nfrom b import Network\n{PIECES[5]}",
        "b": HEAD + PIECES[4],
        "c": f"{HEAD}from a import train\nfrom b import Network\n{PIECES[8]}",
    },
    {
        "sub/__init__": HEAD + "from .report import *\nfrom .d import Network\n",
        "sub/report": HEAD + PIECES[0] + PIECES[2] + PIECES[3],
        "sub/d": HEAD + PIECES[4],
        "a": f"{HEAD}from sub import *\nfrom sub import Network\n{PIECES[5]}{PIECES[6]}",
        "b": f"{HEAD}from a import *\n{PIECES[7]}",
    },
    {
        "sub/__init__": HEAD + "report = print\n",
        "sub/report": HEAD + PIECES[0],
        "a": f"{HEAD}from sub import report\n{PIECES[6].replace('report(', 'report.report(')}",
        "tests/test_a": f"{HEAD}from a import evaluate\n{PIECES[7]}",
    },
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A program of some imports and some definitions."""
    other = st.sampled_from(MODULES)
    lines = [
        draw(st.sampled_from(IMPORTS if name.startswith(".") else IMPORTS + PLAIN_IMPORTS)).format(other=name)
        for name in draw(st.lists(other, max_size=3))
    ]
    pieces = draw(st.lists(st.sampled_from(PIECES), max_size=4, unique=True))
    return "\n".join(["import torch", "from torch import nn", *lines, *pieces])


def checked(
    files: Iterable[Path], rules: LintSettings, known: Cache | None
) -> dict[Path, tuple[Diagnostic, ...]]:
    """What is found in files; what is ``known`` need not be computed."""
    layouts = Layouts(lambda _: Options())
    results = runner.run(list(files), lambda _: rules, Mode(), 1, None, known, layouts.of)
    return {result.path: result.diagnostics for result in results}


class Editing(RuleBasedStateMachine):
    """A project in which somebody edits, and of which some files are checked now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="torchlint-"))
        self.work = self.home / "work"
        self.work.mkdir()
        (self.work / "pyproject.toml").touch()
        self.lint = LintSettings()
        self.limits = pytest.MonkeyPatch()

    def teardown(self) -> None:
        self.limits.undo()
        shutil.rmtree(self.home)

    @property
    def files(self) -> list[Path]:
        return [path for name in NAMES if (path := self.work / f"{name}.py").exists()]

    @initialize(
        texts=st.sampled_from(PROJECTS),
        users=st.sampled_from([1, 24]),
        companions=st.sampled_from([3, 60]),
        library=st.sampled_from([0, 1]),
        rules=st.sampled_from([RULES, ALONE]),
    )
    def begin(
        self, texts: dict[str, str], users: int, companions: int, library: int, rules: tuple[str, ...]
    ) -> None:
        """Lay a project, with limits that can be crossed."""
        # One object for both: a model is that of one object of settings.
        self.lint = LintSettings(rules=rules, fixable=frozenset(rules))
        self.limits.setattr(program, "MOST_USERS", users)
        self.limits.setattr(index, "MOST_COMPANIONS", companions)
        self.limits.setattr(program, "_MOST_USERS_IN_LIBRARY", library)
        for name, text in texts.items():
            self.write(name, text)

    @rule(name=st.sampled_from(NAMES), text=texts())
    def write(self, name: str, text: str) -> None:
        """Add a file, or write it anew."""
        path = self.work / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    @precondition(lambda self: self.files)
    @rule(data=st.data(), change=st.sampled_from(TOGGLED), back=st.booleans())
    def toggle(self, data: st.DataObject, change: tuple[str, str], back: bool) -> None:
        """Edit what some files have in common, in one or all of them, and maybe take it back."""
        one, other = change
        concerned = [path for path in self.files if one in path.read_text() or other in path.read_text()]
        one_only: bool = data.draw(st.booleans())
        if concerned and one_only:
            concerned = [data.draw(st.sampled_from(concerned))]
        for turn in range(2 if back else 1):
            if turn:
                self.compare(self.files)
            for path in concerned:
                text = path.read_text()
                # The longer one may hold the shorter.
                before, after = change if len(one) > len(other) else change[::-1]
                new = text.replace(before, after) if before in text else text.replace(after, before)
                path.write_text(new)

    @precondition(lambda self: self.files)
    @rule(data=st.data())
    def remark(self, data: st.DataObject) -> None:
        """Move all lines."""
        path = data.draw(st.sampled_from(self.files))
        path.write_text(f"# a remark\n{path.read_text()}")

    @precondition(lambda self: self.files)
    @rule(data=st.data(), remark=st.sampled_from(REMARKS), behind=st.booleans())
    def remark_somewhere(self, data: st.DataObject, remark: str, behind: bool) -> None:
        """Add a comment or white space, behind a line or below it."""
        path = data.draw(st.sampled_from(self.files))
        lines = path.read_text().split("\n")
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at : at + 1] = [f"{lines[at]}  {remark}"] if behind else [lines[at], remark]
        path.write_text("\n".join(lines))

    @precondition(lambda self: self.files)
    @rule(data=st.data(), statement=st.sampled_from(INSERTED))
    def insert(self, data: st.DataObject, statement: str) -> None:
        """Add a statement to the body of a function, of a class or of a loop; or take it away."""
        path = data.draw(st.sampled_from(self.files))
        lines = path.read_text().split("\n")
        indented = [at for at, line in enumerate(lines) if line.startswith("    ") and line.strip()]
        if indented:
            at = data.draw(st.sampled_from(indented))
            indent = lines[at][: -len(lines[at].lstrip())]
            same = lines[at] == indent + statement
            lines[at : at + 1] = [] if same else [indent + statement, lines[at]]
            path.write_text("\n".join(lines))

    @precondition(lambda self: self.files)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.files)).unlink()

    @precondition(lambda self: self.files)
    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def rename(self, data: st.DataObject, name: str) -> None:
        (self.work / name).parent.mkdir(exist_ok=True)
        data.draw(st.sampled_from(self.files)).rename(self.work / f"{name}.py")

    @invariant()
    def check_all(self) -> None:
        self.compare(self.files)

    @precondition(lambda self: self.files)
    @rule(data=st.data())
    def check_some(self, data: st.DataObject) -> None:
        """Check some files, in any order."""
        self.compare(data.draw(st.lists(st.sampled_from(self.files), unique=True)))

    def compare(self, asked: list[Path]) -> None:
        """Check files with what earlier runs have left, and without."""
        known = Cache(Store(self.home / "store"), self.work, "code")
        cold = checked(asked, self.lint, None)
        assert checked(asked, self.lint, known) == cold, {
            path.relative_to(self.work).as_posix(): path.read_text() for path in self.files
        }


TestEditing = Editing.TestCase
TestEditing.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    derandomize=False,
    suppress_health_check=list(HealthCheck),
)


# --- what it took a while to find --------------------------------------------------------------------------

CALLED = dedent("""\
    import torch
    from {module} import {name}


    def train(model, loader):
        for batch in loader:
            loss = model(batch.cuda()).mean()
            loss.backward()
            {call}(loss)
    """)


def called(module: str, name: str, call: str) -> str:
    return CALLED.format(module=module, name=name, call=call)


@pytest.mark.parametrize(
    ("files", "edits"),
    [
        pytest.param(
            {"report.py": PIECES[0], "a.py": called("report", "report", "report") + "def broken(:\n"},
            {"a.py": called("report", "report", "report")},
            id="a user that was no program",
        ),
        pytest.param(
            {
                "sub/__init__.py": "report = None\n",
                "sub/report.py": PIECES[0],
                "a.py": called("sub", "report", "report.report"),
            },
            {"sub/__init__.py": "reported = None\n"},
            id="a name that hid a module",
        ),
        pytest.param(
            {
                "report.py": PIECES[0],
                "a.py": "from b import name\n" + called("report", "report", "report"),
                "b.py": "from c import name\n",
                "c.py": "name = 1\n",
            },
            {"b.py": "from c import name\nname = 1\n"},
            id="a program that became too large",
        ),
        pytest.param(
            {
                "report.py": PIECES[0],
                "a.py": "from b import name\n" + called("report", "report", "report"),
                "b.py": "from c import name\nname = 1\n",
                "c.py": "name = 1\n",
            },
            {"b.py": "from c import name\n"},
            id="a program that was too large",
        ),
    ],
)
def test_a_change_that_no_import_shows_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], edits: dict[str, str]
) -> None:
    monkeypatch.setattr(index, "MOST_COMPANIONS", 3)
    work = tmp_path / "work"
    answers = []
    for texts in ({"pyproject.toml": "", **files}, edits):
        for name, text in texts.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)
        paths = sorted(work.rglob("*.py"))
        lint = LintSettings(rules=RULES)
        cold = checked(paths, lint, None)
        assert checked(paths, lint, Cache(Store(tmp_path / "store"), work, "code")) == cold
        answers.append(cold[next(path for path in paths if path.name == "report.py")])
    assert answers[0] != answers[1]


def chained(number: int) -> str:
    """A file whose class has a part of the class of the file before, and whose function nobody calls."""
    before = f"from part{number - 1} import Part{number - 1}\n" if number else ""
    part = f"Part{number - 1}()" if number else "nn.Linear(8, 8)"
    return (
        HEAD
        + before
        + dedent(f"""\


        class Part{number}(nn.Module):
            def __init__(self):
                super().__init__()
                self.part = {part}

            def forward(self, images):
                return self.part(images)


        def show{number}(loss):
            print(loss.item())
        """)
    )


def test_a_result_rests_on_no_file_that_nothing_was_asked_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST_COMPANIONS", 3)
    work = tmp_path / "work"
    work.mkdir()
    (work / "pyproject.toml").touch()
    for number in range(8):
        (work / f"part{number}.py").write_text(chained(number))
    layout = Layouts(lambda _: Options()).of(work / "part0.py")
    assert layout is not None
    project = Project(layout.index())
    for file in layout.files:
        checker.check(reading.read(file), LintSettings(rules=RULES), project=project)
    rests = {file.stem: {other.stem for other in project.consulted(file)} for file in layout.files}
    assert {"part0", "part1"} <= rests["part1"]
    # Each imports the one before, and is connected with all: only what is asked about counts.
    assert "part7" not in rests["part0"]
    assert "part0" not in rests["part7"]


def test_what_is_remembered_for_one_file_is_noted_for_the_next_that_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ``loop`` depends on is three imports away, and known already: ``handed`` was checked before it."""
    monkeypatch.setattr(index, "MOST_COMPANIONS", 2)
    work = tmp_path / "work"
    work.mkdir()
    texts = {
        "given.py": HEAD + "def given():\n    return torch.ones(8, device='cuda')\n",
        "got.py": HEAD + "from given import given\ndef got():\n    return given()\n",
        "handed.py": HEAD + "from got import got\ndef handed():\n    return got()\nprint(handed().item())\n",
        "loop.py": HEAD
        + dedent("""\
        from handed import handed
        def train(model, loader, optimizer):
            for batch in loader:
                loss = model(batch.cuda()).mean()
                loss.backward()
                optimizer.step()
                total = handed().sum().item()
        """),
    }
    for name, text in {"pyproject.toml": "", **texts}.items():
        (work / name).write_text(text)
    paths = sorted(work.rglob("*.py"))
    lint = LintSettings(rules=RULES)
    answers = []
    for device in ("cuda", "cpu"):
        (work / "given.py").write_text(texts["given.py"].replace("cuda", device))
        cold = checked(paths, lint, None)
        assert checked(paths, lint, Cache(Store(tmp_path / "store"), work, "code")) == cold
        answers.append(cold[work / "loop.py"])
    assert answers[0] != answers[1]


def test_a_word_that_lets_a_rule_see_the_file_is_noticed(tmp_path: Path) -> None:
    """The rule was not asked about ``data`` before, so that nothing else notes what it would depend on."""
    work = tmp_path / "work"
    work.mkdir()
    texts = {
        "settings.py": "DEVICE = 'cpu'\n",
        "data.py": HEAD
        + dedent("""\
        from settings import DEVICE


        class Rows(torch.utils.data.Dataset):
            def __init__(self, rows):
                self.rows = rows

            def __getitem__(self, at):
                return torch.ones(8).to(DEVICE)
        """),
        "train.py": HEAD
        + dedent("""\
        from data import Rows
        for row in torch.utils.data.DataLoader(Rows([1]), num_workers=2):
            print(row)
        """),
    }
    for name, text in {"pyproject.toml": "", **texts}.items():
        (work / name).write_text(text)
    paths = sorted(work.rglob("*.py"))
    lint = LintSettings(rules=("TL107",))
    answers = []
    for device in ("cpu", "cuda"):
        (work / "settings.py").write_text(texts["settings.py"].replace("cpu", device))
        cold = checked(paths, lint, None)
        assert checked(paths, lint, Cache(Store(tmp_path / "store"), work, "code")) == cold
        answers.append(cold[work / "data.py"])
    assert not answers[0]
    assert answers[1]
