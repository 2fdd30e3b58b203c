"""The distribution: wheel, sdist and editable install give the same torchlint, without torch."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from torchlint import __version__, toml

# Run in an environment of its own: what is importable there, and under which name.
PROBE = """
import importlib, importlib.metadata, json, pkgutil, sys
import torchlint, torchlint.rules
modules = ["torchlint", "torchlint.rules"]
for package in (torchlint, torchlint.rules):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.endswith("__main__") or module.name.startswith("torchlint.dev"):
            continue
        # Bench cases import torch, and some parts need an extra; it is enough that they are there.
        apart = module.name.startswith(("torchlint.verify.", "torchlint.server.", "torchlint.ipython"))
        if not apart and ".cases." not in module.name:
            importlib.import_module(module.name)
        modules.append(module.name)
from torchlint.registry import catalogue, rules
print(json.dumps({
    "modules": sorted(set(modules)),
    "version": torchlint.__version__,
    "metadata": importlib.metadata.version("torchlint"),
    "rules": list(rules()),
    "catalogue": list(catalogue()),
    "home": torchlint.rules.__file__,
    "torch": "torch" in sys.modules,
    "installed": sorted(d.metadata["Name"].lower() for d in importlib.metadata.distributions()),
}))
"""

PROGRAM = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch.cuda())
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""


def run(
    *command: str | Path,
    cwd: Path,
    check: bool = True,
    umask: int = -1,
    more: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run a command away from the checkout, so that nothing is imported from it by accident."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**environment, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **more},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done


BUILD = (sys.executable, "-m", "build", "--no-isolation")


@pytest.fixture(scope="session")
def distributions(project_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist and the wheel made from it."""
    built = tmp_path_factory.mktemp("built")
    run(*BUILD, "--outdir", built, cwd=project_copy, umask=0o022)
    (sdist,) = built.glob("*.tar.gz")
    (wheel,) = built.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel}


@pytest.fixture(scope="session")
def distributions_of_another(project_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same from a checkout with other times and modes, in another folder, zone and language."""
    copy = tmp_path_factory.mktemp("élsewhere") / "a checkout"
    built = tmp_path_factory.mktemp("built elsewhere")
    shutil.copytree(project_copy, copy, copy_function=shutil.copyfile)
    for path in copy.rglob("*"):
        path.chmod(0o700)
        os.utime(path, (1_000_000_000, 1_100_000_000))
    other = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "LANG": "tr_TR.UTF-8", "HOME": str(built)}
    run(*BUILD, "--sdist", "--wheel", "--outdir", built, cwd=copy, umask=0o077, more=other)
    (sdist,) = built.glob("*.tar.gz")
    (wheel,) = built.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel}


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, with_pip=True)
    return directory / ("Scripts" if os.name == "nt" else "bin")


def expected_modules(project: Path) -> list[str]:
    """The module names that the source files of a checkout stand for."""
    names = set()
    for folder in ("torchlint", "rules"):
        for path in (project / folder).rglob("*.py"):
            parts = list(path.relative_to(project).with_suffix("").parts)
            if folder == "rules":
                parts.insert(0, "torchlint")
            if parts[-1] == "__init__":
                parts.pop()
            if parts[-1] != "__main__" and parts[:2] != ["torchlint", "dev"]:
                names.add(".".join(parts))
    return sorted(names)


def test_the_wheel_holds_the_sources_and_nothing_else(
    distributions: dict[str, Path], project_copy: Path
) -> None:
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = {
        path.relative_to(project_copy).as_posix()
        for folder in ("torchlint", "rules")
        for path in (project_copy / folder).rglob("*")
        if path.suffix == ".py"
        or path.name in ("effects.json", "py.typed", "torchlint.schema.json")
        or path.parent.name == "templates"
    }
    wanted = {
        f"torchlint/{name}" if name.startswith("rules/") else name
        for name in files
        if not name.startswith("torchlint/dev/")
    }
    assert names == wanted


def test_whoever_builds_it_gets_the_same_bytes(
    distributions: dict[str, Path], distributions_of_another: dict[str, Path]
) -> None:
    # The first wheel is made of the sdist, the other one of a checkout.
    for kind, path in distributions.items():
        assert path.read_bytes() == distributions_of_another[kind].read_bytes(), kind
    with tarfile.open(distributions["sdist"]) as sdist:
        members = sdist.getmembers()
        names = {member.name.partition("/")[2] for member in members}
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py", "rules/__init__.py"} <= names
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert {(member.isdir(), member.mode) for member in members} == {(True, 0o755), (False, 0o644)}
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        modes = {
            info.external_attr >> 16 & 0o777 for info in wheel.infolist() if "RECORD" not in info.filename
        }
    assert modes == {0o644}


def test_the_metadata_asks_for_no_torch(distributions: dict[str, Path]) -> None:
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        contents = {name: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/" in name}
    (name,) = (name for name in contents if name.endswith("METADATA"))
    metadata = contents[name]
    assert f"\nVersion: {__version__}\n" in metadata
    assert "\nRequires-Python: >=3.10\n" in metadata
    (name,) = (name for name in contents if name.endswith("entry_points.txt"))
    assert "[validate_pyproject.tool_schema]\ntorchlint = torchlint.schema:get_schema\n" in contents[name]
    base = [
        line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line
    ]
    assert any(re.search(r"libcst.*>=1\.9", line) for line in base)
    assert not any(re.search(r"torch|numpy", line) for line in base)
    assert {"Provides-Extra: dev", "Provides-Extra: lsp", "Provides-Extra: verify"} <= set(
        metadata.splitlines()
    )


# One environment serves all three, since most of the time goes into the dependencies.
@pytest.mark.parametrize("kind", ["wheel", "sdist", "editable"])
def test_an_install_works(
    kind: str, distributions: dict[str, Path], project_copy: Path, environment: Path, tmp_path: Path
) -> None:
    what = ("--editable", project_copy) if kind == "editable" else (distributions[kind],)
    pip = (environment / "python", "-m", "pip", "--quiet")
    run(*pip, "install", "--force-reinstall", "--no-deps", *what, cwd=tmp_path)
    run(*pip, "install", "torchlint", cwd=tmp_path)  # its dependencies, where they are not there yet
    run(*pip, "check", cwd=tmp_path)
    probed = json.loads(run(environment / "python", "-c", PROBE, cwd=tmp_path).stdout)
    assert probed["modules"] == expected_modules(project_copy)
    assert probed["version"] == probed["metadata"] == __version__
    assert probed["rules"] == probed["catalogue"] != []
    assert not probed["torch"] and "torch" not in probed["installed"]
    assert Path(probed["home"]).is_relative_to(project_copy) == (kind == "editable")

    torchlint = environment / "torchlint"
    assert run(torchlint, "--version", cwd=tmp_path).stdout == f"torchlint {__version__}\n"
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    found = run(torchlint, "--isolated", "--output-format", "json", cwd=tmp_path, check=False)
    assert found.returncode == 1, found.stderr
    assert "TL601" in {item["code"] for item in json.loads(found.stdout)}


def test_what_the_base_install_brings_is_little_and_justified(project_copy: Path) -> None:
    told = (project_copy / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = told.partition("## Dependencies\n")[2].partition("\n## ")[0]
    settings = toml.loads((project_copy / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in settings["dependencies"]:
        name, bound = re.split(r"(?=[<>=~!])", requirement.partition(";")[0].strip(), maxsplit=1)
        assert bound.startswith(">="), f"{requirement} has no lower bound"
        assert f"| `{name}` |" in section, f"CONTRIBUTING.md does not say what {name} is for"
        floor = bound.partition(",")[0].removeprefix(">=")
        assert f"| {floor} |" in section, f"CONTRIBUTING.md names another lowest release of {name}"
    assert len(settings["dependencies"]) <= 8
    for extra in ("lsp", "verify"):
        for requirement in settings["optional-dependencies"].get(extra, ()):
            assert f"`{re.split(r'[<>=~!;]', requirement)[0].strip()}`" in section


def test_every_folder_of_rules_is_a_package(project_copy: Path) -> None:
    folders = {path.parent for path in (project_copy / "rules").rglob("*.py")}
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()
