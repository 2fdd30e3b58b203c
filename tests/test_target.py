"""The range of torch releases: what declarations admit, which of them counts, what rules may conclude."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.version import Version

from torchlint import cli, target
from torchlint.commands import build
from torchlint.target import Target


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository root, so that nothing above it is read; no torch is installed."""
    (tmp_path / ".git").mkdir()
    target._declared.cache_clear()
    target._files.cache_clear()
    monkeypatch.setattr(target, "installed", lambda package: Target.unknown("nothing installed"))
    return tmp_path


def bounds(found: Target) -> tuple[str | None, str | None]:
    return (str(found.lower) if found.lower else None, str(found.upper) if found.upper else None)


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("2.1", "2.1", None),
        ("2.1.0+cu118", "2.1.0", None),
        ("2.1.0a0+gitabc", "2.1.0", None),
        (">=2.1,<2.5", "2.1.0", "2.4.1"),
        ("<2.5", None, "2.4.1"),
        ("==2.1.0+cu118", "2.1.0", "2.1.0"),
        ("==2.1.*", "2.1.0", "2.1.2"),
        ("~=2.1", "2.1.0", None),
        (">2.0", "2.0.1", None),
        ("!=2.1.0", None, None),
        (">=1.4", "1.4", None),
        (">=7.1", "7.1", None),
        ("unknown", None, None),
    ],
)
def test_a_version_or_a_range_is_read(text: str, lower: str | None, upper: str | None) -> None:
    assert bounds(Target.parse(text)) == (lower, upper)


@pytest.mark.parametrize("text", ["", "latest", "2.x", ">=", "torch>=2"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected one such as `2.1`"):
        Target.parse(text)


@pytest.mark.parametrize(
    ("text", "meant"), [("24", "; did you mean `2.4`?"), ("213", "; did you mean `2.13`?"), ("99.1", "")]
)
def test_a_release_that_cannot_be_is_refused(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=r"there is no torch") as raised:
        Target.parse(text)
    assert str(raised.value).endswith(meant or "2.15.0")


def test_questions_about_a_known_target() -> None:
    known = Target.parse(">=1.13,<2.3")
    assert known.admits_below("2.0")
    assert not known.admits_below("1.13")
    assert known.at_least("1.13")
    assert not known.at_least("2.0")
    assert known.admits("2.2")
    assert not known.admits("2.3")


def test_an_unknown_target_proves_nothing_and_admits_everything() -> None:
    unknown = Target.unknown()
    assert unknown.admits_below("2.0")
    assert not unknown.at_least("1.7")
    assert unknown.admits("99.0")


def test_a_target_survives_the_way_to_a_worker() -> None:
    sent = pickle.loads(pickle.dumps(Target.parse(">=2.1,<2.5", "somewhere")))
    assert sent == Target.parse(">=2.1,<2.5")
    assert sent.origin == "somewhere"


def test_the_origin_takes_no_part_in_equality() -> None:
    assert Target.parse("2.1", "a") == Target.parse("2.1", "b")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2.1", ">=2.1"),
        ("==2.1.0", "==2.1.0"),
        ("<2.5", "<=2.4.1"),
        ("unknown", "unknown"),
        (">=2,<2.5", ">=2.0.0,<=2.4.1"),
    ],
)
def test_a_target_is_shown_as_a_range(text: str, shown: str) -> None:
    assert str(Target.parse(text)) == shown


@pytest.mark.parametrize(
    ("name", "text", "lower"),
    [
        ("requirements.txt", "numpy\ntorch>=1.12  # because\n", "1.12.0"),
        ("requirements.txt", "torch==2.1.0+cu118 --hash=sha256:aa\n", "2.1.0"),
        ("requirements.txt", "torch >= 2.0 ; python_version < '3.12'\n", "2.0.0"),
        ("requirements.txt", "torch==2.0.1 \\\n    --hash=sha256:aa\n", "2.0.1"),
        ("requirements.txt", "torch[opt]~=2.2\n", "2.2.0"),
        ("requirements-dev.txt", "torch==1.13.1\n", "1.13.1"),
        ("requirements.txt", "torchvision>=0.15\npytorch-lightning>=2\n", None),
        ("requirements.txt", "-r other.txt\n--extra-index-url https://x/torch\n", None),
        ("pyproject.toml", '[project]\ndependencies = ["torch>=2.0,!=2.0.1"]\n', "2.0.0"),
        ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["torch>=1.11"]\n', "1.11.0"),
        ("pyproject.toml", '[dependency-groups]\ndev = ["torch==2.4.1", {include-group = "x"}]\n', "2.4.1"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.1"\n', "2.1.0"),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntorch = {version = "~1.13", source = "x"}\n',
            "1.13.0",
        ),
        (
            "pyproject.toml",
            '[tool.poetry.group.ml.dependencies]\ntorch = [{version = "2.0.1"}, {version = "^2.2"}]\n',
            "2.0.1",
        ),
        ("pyproject.toml", '[tool.pixi.dependencies]\npytorch = ">=2.3,<3"\n', "2.3.0"),
        ("pyproject.toml", '[build-system]\nrequires = ["torch>=2.5"]\n', None),
        ("pyproject.toml", "[project\ntorch", None),
        ("Pipfile", '[packages]\ntorch = "==1.10.2"\n', "1.10.2"),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.9\n", "1.9.0"),
        ("setup.py", "setup(install_requires=['torch>=1.8.1', 'numpy'], name='torch')", "1.8.1"),
        ("setup.py", "setup(", None),
        ("environment.yml", "dependencies:\n  - pytorch=2.1=py3.10_cuda12\n", "2.1.0"),
        ("environment.yml", "dependencies:\n  - pytorch::pytorch==2.1.0\n  - pytorch-cuda=12.1\n", "2.1.0"),
        ("environment.yml", "dependencies:\n  - pytorch 2.2.* *cuda*\n", "2.2.0"),
        ("environment.yml", "dependencies:\n  - pip:\n    - torch==2.0.1+cu117\n", "2.0.1"),
        ("conda.yaml", "dependencies:\n  - pytorch=2.1\n", "2.1.0"),
        ("cog.yaml", 'build:\n  python_packages:\n    - "torch==2.0.1"\n', "2.0.1"),
        ("requirements.in", "torch==2.4.0\n", "2.4.0"),
        ("constraints.txt", "torch==2.4.0\n", "2.4.0"),
        ("PKG-INFO", "Name: a\nRequires-Dist: torch (>=1.8)\n\nNeeds torch>=2.5\n", "1.8.0"),
        ("a-1.0.dist-info/METADATA", "Requires-Dist: torch>=2.0; extra == 'gpu'\n", "2.0.0"),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.6.0"\nsource = {}\n', "2.6.0"),
        ("poetry.lock", '[[package]]\nname = "torch"\nversion = "2.3.1+cpu"\n', "2.3.1"),
        ("Pipfile.lock", '{"default": {"torch": {"hashes": ["a"], "version": "==2.2.2"}}}', "2.2.2"),
        ("conda-lock.yml", "package:\n- name: pytorch\n  version: 2.1.2\n", "2.1.2"),
    ],
)
def test_each_kind_of_declaration_is_read(project: Path, name: str, text: str, lower: str | None) -> None:
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text(text)
    assert bounds(target.detect(project))[0] == lower


def test_an_environment_declares_nothing(project: Path) -> None:
    """What a distribution requires is no matter of others beside it."""
    for name in ("a-1.0.dist-info", "b-1.0.dist-info"):
        (project / name).mkdir()
        (project / name / "METADATA").write_text("Requires-Dist: torch>=2.0\n")
    assert bounds(target.detect(project))[0] != "2.0.0"


def test_the_lowest_of_all_declarations_counts(project: Path) -> None:
    (project / "requirements.txt").write_text("torch>=2.0\n")
    (project / "requirements").mkdir()
    (project / "requirements" / "old.txt").write_text("torch>=1.12\n")
    assert target.detect(project).lower == Version("1.12.0")


def test_a_declared_bound_counts_before_the_lock_file(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=1.13"]\n')
    (project / "uv.lock").write_text('name = "torch"\nversion = "2.9.0"\n')
    found = target.detect(project)
    assert (found.lower, found.origin) == (Version("1.13.0"), str(project / "pyproject.toml"))


@pytest.mark.parametrize(
    ("pins", "upper"),
    [
        ({"requirements.txt": "torch==2.3.1\n"}, "2.3.1"),
        ({"uv.lock": 'name = "torch"\nversion = "2.9.0"\n'}, "2.9.0"),
        ({"requirements.txt": "torch==2.3.1\n", "environment.yml": "- torch==2.5.1\n"}, "2.5.1"),
        (
            {"uv.lock": 'name = "torch"\nversion = "1.7.1"\n'},
            None,
        ),  # older than what is declared: left behind
        ({"requirements.txt": "torch>=2.3\n"}, None),
    ],
)
def test_no_release_is_newer_than_the_pins(project: Path, pins: dict[str, str], upper: str | None) -> None:
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=1.13"]\n')
    for name, text in pins.items():
        (project / name).write_text(text)
    assert bounds(target.detect(project))[1] == upper


def test_the_lock_file_pins_what_the_declaration_leaves_open(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["torch"]\n')
    (project / "uv.lock").write_text('name = "torch"\nversion = "2.9.0"\n')
    found = target.detect(project)
    assert (found.lower, found.upper, found.origin) == (
        Version("2.9.0"),
        Version("2.9.0"),
        str(project / "uv.lock"),
    )


def test_a_declaration_without_a_bound_admits_any_release(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "installed", lambda package: Target.parse("==2.9.0"))
    (project / "requirements.txt").write_text("torch\n")
    assert target.detect(project) == Target.unknown()


def test_the_closest_directory_that_speaks_of_torch_decides(project: Path) -> None:
    (project / "requirements.txt").write_text("torch>=2.4\n")
    inner = project / "examples" / "old"
    inner.mkdir(parents=True)
    (inner.parent / "requirements.txt").write_text("numpy\n")
    (inner / "train.py").write_text("")
    assert target.detect(inner / "train.py").lower == Version("2.4.0")
    target._declared.cache_clear()
    target._files.cache_clear()
    (inner / "requirements.txt").write_text("torch==1.13.1\n")
    assert target.detect(inner / "train.py").lower == Version("1.13.1")


def test_nothing_above_the_repository_is_read(project: Path) -> None:
    (project / "requirements.txt").write_text("torch>=2.4\n")
    inner = project / "inner"
    (inner / ".git").mkdir(parents=True)
    assert target.detect(inner) == Target.unknown()


def test_without_a_declaration_the_installed_release_counts(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "installed", lambda package: Target.parse("==2.9.0"))
    assert target.detect(project).lower == Version("2.9.0")


@pytest.mark.parametrize(
    ("name", "text", "lower"),
    [
        ("requirements.txt", "torch>=2.1\ntransformers>=4.46\nsentence-transformers>=3.0\n", "4.46.0"),
        ("requirements.txt", "transformers[torch]>4.45.2,<5\n", "4.46.0"),
        ("requirements.txt", "adapter-transformers==3.2\ntransformers\n", None),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "^4.41"\n', "4.41.0"),
        (
            "setup.py",
            "setup(install_requires=['torch>=2', 'transformers~=4.50.0', 'transformers'])",
            "4.50.0",
        ),
        ("environment.yml", "dependencies:\n  - transformers=4.51\n", "4.51.0"),
        ("environment.yml", "dependencies:\n  - pip:\n    - transformers==4.51.3\n", "4.51.3"),
        ("uv.lock", '[[package]]\nname = "transformers"\nversion = "5.2.0"\n', "5.2.0"),
        ("Pipfile.lock", '{"transformers": {"hashes": [], "version": "==4.57.1"}}', "4.57.1"),
    ],
)
def test_other_libraries_are_found_as_torch_is(
    project: Path, name: str, text: str, lower: str | None
) -> None:
    (project / name).write_text(text)
    assert bounds(target.detect(project, "transformers"))[0] == lower


def test_each_library_has_a_target_of_its_own(project: Path) -> None:
    (project / "requirements.txt").write_text("transformers<5\naccelerate>=1.0\n")
    assert bounds(target.detect(project, "transformers")) == (None, "4.57.6")
    assert bounds(target.detect(project, "accelerate")) == ("1.0.0", None)
    assert target.detect(project) == Target.unknown()


def test_the_installed_release_is_read_from_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    target.installed.cache_clear()
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"torch": "2.13.0+cpu"}[name])
    assert target.installed() == Target.parse("==2.13.0")
    target.installed.cache_clear()


@pytest.mark.parametrize("options", [(), ("--isolated",), ("--no-project",), ("--isolated", "--no-project")])
def test_pins_count_however_a_file_is_checked(project: Path, options: tuple[str, ...]) -> None:
    (project / "requirements.txt").write_text("torch==2.3.1\n")
    (project / "src").mkdir()
    norm = project / "src" / "norm.py"
    norm.write_text(
        "import torch\n\n\nclass Norm(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
    )
    arguments = ["check", "--no-cache", "--select", "TL405", *options, str(norm)]
    command = build(cli._COMMANDS, cli._DEFAULT)
    assert CliRunner().invoke(command, arguments).exit_code == 0  # it has no `rms_norm`
    (project / "requirements.txt").write_text("torch==2.5.1\n")
    target._declared.cache_clear()
    target._files.cache_clear()
    assert CliRunner().invoke(command, arguments).exit_code == 1
