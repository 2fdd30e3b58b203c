"""Where the names of a project lead."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from torchlint.project.index import Index
from torchlint.project.roots import fails_on_warnings, root_of, source_folders

Files = Mapping[str, str]


def index(folder: Path, files: Files) -> Index:
    """The index of a project that is written to ``folder``."""
    for name, text in {"pyproject.toml": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    programs = [folder / name for name in files if name.endswith(".py")]
    return Index(source_folders(folder), programs)


def place(folder: Path, files: Files, file: str, name: str) -> str | None:
    """Where a name of a file is defined, as ``path:name``, or ``path`` for a whole file."""
    found = index(folder, files).definition(folder / file, name)
    if found is None:
        return None
    path = found.file.relative_to(folder).as_posix()
    return path if found.definition is None else f"{path}:{found.definition.name}"


GETATTR = "def __getattr__(name):\n    "
LAZY = (
    f"{GETATTR}from .engine import train\n    return train",
    f"T = {{'train': '.engine'}}\n{GETATTR}return getattr(import_module(T[name], __name__), name)",
    f"T = {{'train': 'engine'}}\n{GETATTR}return getattr(import_module(f'.{{T[name]}}', __name__), name)",
    f"T = {{'train': 'engine'}}\n{GETATTR}return getattr(import_module(__name__ + '.' + T[name]), name)",
    f"T = {{'train': 'pkg.engine'}}\n{GETATTR}return getattr(import_module(T[name]), name)",
    f"T = {{'train': 'pkg.engine.train'}}\n{GETATTR}return locate(T[name])",
    f"T: dict = {{'train': '.engine:train'}}\n{GETATTR}return load(T[name])",
    f"T = {{'train': ('pkg.engine', 'train')}}\n{GETATTR}return load(*T[name])",
    f"T = {{'pkg.engine': ['train']}}\n{GETATTR}return load(name)",
    f"T = {{}}\nT['.engine'] = ['train', 'test']\n{GETATTR}return load(name)",
    "__getattr__, __dir__, __all__ = lazy.attach(__name__, submod_attrs={'engine': ['train']})",
    "__getattr__ = attach(__name__, {'engine': ['train']})",
    "T = {'engine': ['train']}\nsys.modules[__name__] = LazyModule(__name__, __file__, T)",
)
NOT_LAZY = (
    "T = {'train': '.engine'}",
    f"T = {{'train': '.motor', 'test': '.engine', 'run': 3}}\n{GETATTR}return load(name)",
    "def load():\n    from .engine import train",
)
PACKAGE: Files = {"pkg/__init__.py": "", "pkg/engine.py": "def train(): ...", "pkg/sub/__init__.py": ""}


@pytest.mark.parametrize(
    ("files", "file", "name", "expected"),
    [
        ({"a.py": "def f(): ..."}, "a.py", "f", "a.py:f"),
        ({"a.py": "from b import f", "b.py": "def f(): ..."}, "a.py", "f", "b.py:f"),
        ({"a.py": "from b import f as g", "b.py": "def f(): ..."}, "a.py", "g", "b.py:f"),
        ({"a.py": "import b", "b.py": ""}, "a.py", "b", "b.py"),
        ({"a.py": "import b as c", "b.py": ""}, "a.py", "c", "b.py"),
        ({"a.py": "from b import *", "b.py": "def f(): ..."}, "a.py", "f", "b.py:f"),
        ({"a.py": "from b import *", "b.py": "__all__ = ['g']\ndef f(): ..."}, "a.py", "f", None),
        ({"a.py": "from b import *", "b.py": "__all__ = ['_f']\ndef _f(): ..."}, "a.py", "_f", "b.py:_f"),
        ({"a.py": "from b import *", "b.py": "def _f(): ..."}, "a.py", "_f", None),
        ({"a.py": "from torch import f"}, "a.py", "f", None),
        (
            {"a.py": "from b import f\nfrom c import f", "b.py": "def f(): ...", "c.py": "f = 1"},
            "a.py",
            "f",
            "c.py:f",
        ),
        # Re-exports, also through several files and in a circle.
        (
            {**PACKAGE, "a.py": "from pkg import train", "pkg/__init__.py": "from .engine import train"},
            *("a.py", "train", "pkg/engine.py:train"),
        ),
        ({"a.py": "from b import f", "b.py": "from a import f"}, "a.py", "f", None),
        ({"a.py": "from b import *", "b.py": "from a import *\ndef f(): ..."}, "a.py", "f", "b.py:f"),
        # Relative imports.
        (
            {**PACKAGE, "pkg/sub/a.py": "from ..engine import train"},
            "pkg/sub/a.py",
            "train",
            "pkg/engine.py:train",
        ),
        ({**PACKAGE, "pkg/a.py": "from . import engine"}, "pkg/a.py", "engine", "pkg/engine.py"),
        ({**PACKAGE, "pkg/a.py": "from .....engine import train"}, "pkg/a.py", "train", None),
        # Names that a package imports when it is asked for them.
        *(
            ({**PACKAGE, "a.py": "from pkg import train", "pkg/__init__.py": lazy}, "a.py", "train", found)
            for found, lazies in (("pkg/engine.py:train", LAZY), (None, NOT_LAZY))
            for lazy in lazies
        ),
        # A branch that falls back, and one for types.
        (
            {"a.py": "try:\n    from b import f\nexcept ImportError:\n    f = None", "b.py": "def f(): ..."},
            "a.py",
            "f",
            "a.py:f",
        ),
        ({"a.py": "if TYPE_CHECKING:\n    from b import C", "b.py": "class C: ..."}, "a.py", "C", "b.py:C"),
        # Namespace packages, and a folder that is no package of the project.
        ({"a.py": "from ns import b", "ns/b.py": ""}, "a.py", "b", "ns/b.py"),
        ({"a.py": "from data import b", "data/b.txt": ""}, "a.py", "b", None),
        # A package goes before a module of its name.
        (
            {"a.py": "from b import f", "b.py": "f = 1", "b/__init__.py": "def f(): ..."},
            "a.py",
            "f",
            "b/__init__.py:f",
        ),
        # What is beside a script goes before what is above it.
        (
            {"run/a.py": "from b import f", "run/b.py": "def f(): ...", "b.py": "f = 1"},
            *("run/a.py", "f", "run/b.py:f"),
        ),
        ({"run/a.py": "from b import f", "b.py": "def f(): ..."}, "run/a.py", "f", "b.py:f"),
        # The src layout, and folders that build back ends are told of.
        ({"run/a.py": "from b import f", "src/b.py": "def f(): ..."}, "run/a.py", "f", "src/b.py:f"),
        (
            {
                "a.py": "from b import f",
                "lib/b.py": "def f(): ...",
                "pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["lib"]',
            },
            *("a.py", "f", "lib/b.py:f"),
        ),
        (
            {
                "a.py": "from b import f",
                "lib/b.py": "def f(): ...",
                "setup.cfg": "[options]\npackage_dir =\n    = lib",
            },
            *("a.py", "f", "lib/b.py:f"),
        ),
        (
            {
                "a.py": "from b import f",
                "lib/b.py": "def f(): ...",
                "setup.py": 'setup(name="b", package_dir={"": "lib"})',
            },
            *("a.py", "f", "lib/b.py:f"),
        ),
        # A package whose folder has another name.
        (
            {
                "run/a.py": "from b.c import f",
                "code/c.py": "def f(): ...",
                "setup.py": 'setup(name="b", packages=["b"], package_dir={"b": "code"})',
            },
            *("run/a.py", "f", "code/c.py:f"),
        ),
        (
            {
                "run/a.py": "from b.ops.c import f",
                "code/ops/c.py": "",
                "native/c.py": "def f(): ...",
                "pyproject.toml": '[tool.setuptools.package-dir]\nb = "code"\n"b.ops" = "native"',
            },
            *("run/a.py", "f", "native/c.py:f"),
        ),
        (
            {
                "run/a.py": "from b import f",
                "__init__.py": "def f(): ...",
                "setup.py": 'setup(name="b", package_dir={"b": "."})',
            },
            *("run/a.py", "f", "__init__.py:f"),
        ),
        (
            {
                "run/a.py": "from b import f",
                "code/__init__.py": "def f(): ...",
                "setup.py": "package_dir={'b'}",
            },
            *("run/a.py", "f", None),
        ),
        (
            {
                "a.py": "from b import f",
                "lib/b/__init__.py": "def f(): ...",
                "pyproject.toml": '[tool.hatch.build.targets.wheel]\npackages = ["lib/b"]',
            },
            *("a.py", "f", "lib/b/__init__.py:f"),
        ),
        (
            {
                "a.py": "from b import f",
                "lib/b.py": "def f(): ...",
                "pyproject.toml": '[[tool.poetry.packages]]\ninclude = "b.py"\nfrom = "lib"',
            },
            *("a.py", "f", "lib/b.py:f"),
        ),
    ],
)
def test_a_name_leads_to_its_definition(
    tmp_path: Path, files: Files, file: str, name: str, expected: str | None
) -> None:
    assert place(tmp_path, files, file, name) == expected


def test_files_of_another_project_are_not_those_of_this_one(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "b.py").write_text("def f(): ...")
    one = index(tmp_path / "one", {"a.py": "from b import f"})
    assert one.definition(tmp_path / "one" / "a.py", "f") is None


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"a.py": "from .b import f"}, True),
        ({"a.py": "from . import f"}, True),
        ({**PACKAGE, "a.py": "import pkg.other"}, True),
        ({**PACKAGE, "a.py": "from pkg.engine import other"}, True),
        ({**PACKAGE, "a.py": "from pkg.engine import train"}, False),
        (
            {**PACKAGE, "a.py": "from pkg import anything", "pkg/__init__.py": "def __getattr__(n): ..."},
            False,
        ),
        ({**PACKAGE, "a.py": "from pkg import Tensor", "pkg/__init__.py": "from torch import *"}, False),
        ({**PACKAGE, "a.py": "from pkg import nn", "pkg/__init__.py": "from torch import nn"}, False),
        ({**PACKAGE, "a.py": "from pkg import broken", "pkg/__init__.py": "def f(:"}, False),
        ({"a.py": "import torch"}, False),
        ({"a.py": "from torch.nn import Linear"}, False),
    ],
)
def test_an_import_is_missing_if_only_the_project_could_have_it(
    tmp_path: Path, files: Files, missing: bool
) -> None:
    assert [link.missing for link in index(tmp_path, files).links(tmp_path / "a.py")] == [missing]


def test_importers_are_those_of_the_file_that_defines_what_they_import(tmp_path: Path) -> None:
    files = {
        **PACKAGE,
        "pkg/__init__.py": "from .engine import train",
        "a.py": "from pkg import train",
        "b.py": "import pkg.engine",
        "c.py": "import pkg",
    }
    importers = index(tmp_path, files).importers(tmp_path / "pkg" / "engine.py")
    assert {file.name for file in importers} == {"__init__.py", "a.py", "b.py"}


@pytest.mark.parametrize(
    ("files", "file", "root"),
    [
        (("pyproject.toml", "pkg/sub/a.py"), "pkg/sub/a.py", "."),
        (("setup.py", "one/setup.cfg", "one/a.py"), "one/a.py", "one"),
        ((".git/HEAD", "run/a.py"), "run/a.py", "."),
    ],
)
def test_the_root_is_the_nearest_folder_with_metadata(
    tmp_path: Path, files: tuple[str, ...], file: str, root: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert root_of(tmp_path / file) == tmp_path / root


@pytest.mark.parametrize(
    ("program", "file", "root"),
    [
        ("from lib.nets.unet import UNet", "lib/nets/unet.py", "."),
        ("import code.lib.nets", "code/lib/nets/unet.py", "."),
        ("from nets.unet import UNet", "lib/nets/unet.py", "lib/nets"),
        ("import a", "a/b/c/nets/unet.py", "a/b/c/nets"),
    ],
)
def test_imports_lead_through_folders_without_modules(
    tmp_path: Path, program: str, file: str, root: str
) -> None:
    (tmp_path / "run.py").write_text(program)
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("")
    assert root_of(tmp_path / file) == tmp_path / root


@pytest.mark.parametrize(
    ("program", "root"),
    [
        ("from nets.unet import UNet", "."),
        ("if True:\n    import nets.blocks.attention", "."),
        ("from nets.losses import Dice", "nets"),
        ("from unet import UNet", "nets"),
        ('"""Called from nets.unet."""', "nets"),
    ],
)
def test_modules_that_import_one_another_by_the_name_of_their_folder_are_below_the_root(
    tmp_path: Path, program: str, root: str
) -> None:
    (tmp_path / "nets" / "blocks").mkdir(parents=True)
    (tmp_path / "nets" / "unet.py").write_text("")
    (tmp_path / "nets" / "train.py").write_text(program)
    assert root_of(tmp_path / "nets" / "unet.py") == tmp_path / root


@pytest.mark.parametrize(
    ("name", "text", "fails"),
    [
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\nfilterwarnings = ["error", "ignore::UserWarning"]',
            True,
        ),
        ("pyproject.toml", '[tool.pytest.ini_options]\nfilterwarnings = [\n  "error",  # all\n]', True),
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = "-q -W error"', True),
        ("pytest.ini", "[pytest]\nfilterwarnings =\n    ignore:.*old.*\n    error::UserWarning\n", True),
        ("setup.cfg", "[tool:pytest]\nfilterwarnings = error\n", True),
        ("tox.ini", "[testenv]\nsetenv = PYTHONWARNINGS=error\n", True),
        ("pyproject.toml", '[tool.pytest.ini_options]\nfilterwarnings = ["error::FutureWarning"]', False),
        ("pyproject.toml", '[tool.ruff]\nerror = "none"\n', False),
        ("pytest.ini", "[pytest]\nfilterwarnings = ignore\n", False),
    ],
)
def test_warnings_are_errors_where_the_tests_are_configured_so(
    tmp_path: Path, name: str, text: str, fails: bool
) -> None:
    (tmp_path / name).write_text(text)
    assert fails_on_warnings(tmp_path) == fails
