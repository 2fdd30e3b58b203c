"""Notebooks are one module to the rules, cells to people, and JSON of which only edited lines change."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchlint import reading, registry
from torchlint.checker import check
from torchlint.config import Resolver
from torchlint.diagnostics import Applicability, Diagnostic, Edit, Fix, Position, Span
from torchlint.fixer import apply, fix
from torchlint.fixes import add_import
from torchlint.notebook import Notebook
from torchlint.options import LintSettings
from torchlint.rule import WARNING, Finding, Rule, rule
from torchlint.runner import Mode, run, run_text
from torchlint.semantics.module import Module
from torchlint.source import NEWLINE, Source, SourceError

NOTEBOOKS = Path(__file__).resolve().parents[1] / "fixtures" / "notebooks"
FIXED = sorted(NOTEBOOKS.glob("*.fixed.ipynb"))
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
PATH = Path("nb.ipynb")
UseRules = Callable[..., LintSettings]


def written(*cells: str | list[str] | dict[str, Any], **how: Any) -> bytes:
    """The JSON of a notebook with these code cells, or cells as they are."""
    made = [
        cell
        if isinstance(cell, dict)
        else {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell}
        for cell in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, **how).encode()


def markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": [text]}


def notebook(*cells: str | list[str] | dict[str, Any], **how: Any) -> Notebook:
    read = reading.from_bytes(written(*cells, **how), PATH)
    assert isinstance(read, Notebook)
    return read


def names(old: str, change: Callable[[cst.Name, Module], tuple[Edit, ...]]) -> Rule:
    """A rule that finds the names ``old`` and edits with ``change``."""

    @rule("XX101", "a-name", severity=WARNING, fix="safe", on=cst.Name)
    def found(node: cst.Name, module: Module) -> Iterator[Finding]:
        """Finds a name."""
        if node.value == old:
            yield Finding(node, "a name", Fix("Go", change(node, module), Applicability.SAFE))

    return found


def replacing(old: str, new: str) -> Rule:
    return names(old, lambda node, module: (Edit(module.tree.span(node), new),))


def places(diagnostics: list[Diagnostic]) -> list[tuple[str, int | None, int, int]]:
    return [(item.code, item.cell, item.start.row, item.start.column) for item in diagnostics]


# --- reading ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_what_is_not_fixed_is_written_back_byte_for_byte(path: Path) -> None:
    source = reading.read(path)
    assert source.to_bytes() == source.encode(source.text) == path.read_bytes()


def test_cells_are_joined_in_order_and_counted_over_all_kinds() -> None:
    source = notebook(markdown("# one"), "x = 1\n", "%%bash\nls", ["y = 2\n", "%time z = 3"], "", "!ls")
    assert source.text == "x = 1\n\ny = 2\n0;    z = 3\n\n###\n"
    assert [(part.cell, part.text) for part in source.parts] == [
        (2, "x = 1\n"),
        (4, "y = 2\n%time z = 3"),
        (5, ""),
        (6, "!ls"),
    ]
    assert [source.text[part.start :][: len(part.text)] for part in source.parts[::2]] == ["x = 1\n", ""]


def test_places_count_in_the_cell() -> None:
    source = notebook(markdown("# one"), "x = 1\ny", "\n  z = 1\n", "w")
    offsets = {name: source.text.index(name) for name in "xyzw"}
    assert {name: source.locate(offset) for name, offset in offsets.items()} == {
        "x": Position(1, 1),
        "y": Position(2, 1),
        "z": Position(2, 3),
        "w": Position(1, 1),
    }
    assert [source.locate(offset).cell for offset in offsets.values()] == [2, 2, 3, 4]
    assert source.locate(source.text.index("y") + 1) == Position(2, 2)
    assert source.locate(source.text.index("if True")).cell == 3
    assert source.locate(10**6) == Position(1, 2)


def test_an_indented_cell_parses_and_keeps_its_text() -> None:
    source = notebook("x = 1", "  y = 2\n  z = 3")
    assert source.text == "x = 1\nif True:\n  y = 2\n  z = 3\n"
    assert source.parts[1].text == "  y = 2\n  z = 3"
    assert source.locate(source.text.index("z")) == Position(2, 3)


@pytest.mark.parametrize(
    ("metadata", "read"),
    [
        ({}, 1),
        ({"kernelspec": {"language": "python"}}, 1),
        ({"language_info": {"name": "ipython3"}}, 1),
        ({"kernelspec": {"language": "julia"}}, 0),
        ({"language_info": {"name": "R"}}, 0),
        ({"kernelspec": {"name": "python3"}, "language_info": {"name": "scala"}}, 0),
        ({"kernelspec": [], "language_info": None}, 1),
        ([], 1),
    ],
)
def test_only_python_is_read(metadata: object, read: int) -> None:
    data = json.loads(written("x = 1"))
    data["metadata"] = metadata
    source = reading.from_bytes(json.dumps(data).encode(), PATH)
    assert len(source.parts) == read
    assert source.to_bytes() == json.dumps(data).encode()


def test_a_cell_in_another_language_is_left_out() -> None:
    source = reading.read(NOTEBOOKS / "windows.ipynb")
    assert [part.cell for part in source.parts] == [1, 2, 3]


@pytest.mark.parametrize(
    ("data", "reason", "place"),
    [
        (b"", "the notebook is not valid JSON: expecting value", (1, 1)),
        (b"[1]", "not a notebook: a notebook must be an object", (1, 1)),
        (b'{"cells": []}', "not a notebook: it has no `nbformat`", (1, 1)),
        (b'{"nbformat": 4}', "not a notebook: it has no `cells`", (1, 1)),
        (b'{"nbformat": 3, "cells": []}', "not a notebook: it has no `worksheets`", (1, 1)),
        (b'{"nbformat": 2, "cells": []}', "notebook format 2 is not supported, only 3 and 4", (1, 1)),
        (
            b'{"nbformat": true, "cells": []}',
            "notebook format True is not supported, only 3 and 4",
            (1, 1),
        ),
        (b'{"nbformat": 4,\n "cells": 7}', "not a notebook: `cells` must be a list", (2, 11)),
        (b'{"nbformat": 4,\n "cells": [7]}', "not a notebook: a cell must be an object", (2, 12)),
        (b'{"nbformat": 4,\n "cells": [{}]}', "cell 1 has no `cell_type`", (2, 12)),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "cell 1 has no source", (1, 27)),
        (
            b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [null]}]}',
            "the source of cell 1 is not text",
            (1, 60),
        ),
        (b'{"nbformat": 4\n "cells": []}', "the notebook is not valid JSON: expecting ',' delimiter", (2, 2)),
        (b'{"nbformat": 4, "cells": []} x', "the notebook is not valid JSON: extra data", (1, 30)),
        (b'{"nbformat": 4,\n "cells": [}', "the notebook is not valid JSON: expecting value", (2, 12)),
        (b'{"nbformat"; 4}', "the notebook is not valid JSON: expecting ':' delimiter", (1, 12)),
        (b'{"a": "\xff"}', "byte 0xff is not valid utf-8", (1, 8)),
        (b'{"a":' * 100_000, "the notebook is nested too deeply", (1, 1)),
        (b'{"a":' + b"[" * 100_000, "the notebook is nested too deeply", (1, 1)),
    ],
)
def test_what_is_no_notebook_is_told_and_where(data: bytes, reason: str, place: tuple[int, int]) -> None:
    with pytest.raises(SourceError) as raised:
        reading.from_bytes(data, PATH)
    assert (raised.value.reason, raised.value.position) == (reason, Position(*place))


def test_broken_json_is_a_diagnostic(use_rules: UseRules) -> None:
    result, source = run_text(b'{\n"cells": [}', PATH, use_rules(), Mode(fix=True))
    assert (places(list(result.diagnostics)), source) == ([("TL001", None, 2, 11)], None)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_the_cells_are_those_that_nbformat_reads(path: Path) -> None:
    text = path.read_text("utf-8-sig")
    read: Any = nbformat.reads(text, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    cells = [cell for sheet in read.get("worksheets", [read]) for cell in sheet["cells"]]
    sources: dict[int | None, str] = {
        number: cell.get("source", cell.get("input")) for number, cell in enumerate(cells, start=1)
    }
    parts = reading.read(path).parts
    assert {part.cell: part.text for part in parts} == {part.cell: sources[part.cell] for part in parts}


# --- fixtures --------------------------------------------------------------------------------------------


def usual() -> LintSettings:
    """The settings of a run without any."""
    return Resolver(registry.catalogue(), {}, (), isolated=True, directory=NOTEBOOKS).lint(NOTEBOOKS)


@pytest.mark.parametrize("path", FIXED, ids=lambda path: path.name)
def test_the_fixed_notebook_differs_in_the_lines_that_were_fixed_only(path: Path) -> None:
    before = NOTEBOOKS / path.name.replace(".fixed", "")
    fixed = fix(reading.read(before), usual())
    assert fixed.source.to_bytes() == path.read_bytes()
    assert fix(reading.read(path), usual()).source.to_bytes() == path.read_bytes()
    old, new = before.read_bytes().splitlines(True), path.read_bytes().splitlines(True)
    assert len(old) == len(new)
    assert 1 <= sum(one != other for one, other in zip(old, new, strict=True)) <= 5


@pytest.mark.parametrize("path", FIXED, ids=lambda path: path.name)
def test_a_fixed_notebook_is_valid_and_the_same_but_for_its_sources(path: Path) -> None:
    before = NOTEBOOKS / path.name.replace(".fixed", "")
    books = [json.loads(file.read_text("utf-8-sig")) for file in (before, path)]
    sources = []
    for book in books:
        nbformat.validate(nbformat.from_dict(book))  # type: ignore[no-untyped-call]
        cells = [cell for sheet in book.get("worksheets", [book]) for cell in sheet["cells"]]
        sources.append([cell.pop("source", None) or cell.pop("input", None) for cell in cells])
    assert books[0] == books[1]
    assert sources[0] != sources[1]


def test_findings_of_a_notebook_have_their_cells() -> None:
    found = check(reading.read(NOTEBOOKS / "fine_tuning.ipynb"), usual())
    assert places(found) == [
        ("TL102", 4, 5, 10),
        ("TL104", 4, 5, 10),
        ("TL302", 7, 6, 9),
        ("TL201", 11, 3, 9),
    ]
    assert [(place.row, place.cell) for place, _ in found[1].related] == [(2, 7)]
    assert [item.noqa_row for item in found] == [5, 5, 6, 3]


def test_no_other_file_imports_a_function_of_a_notebook() -> None:
    cells = (
        "import torch\nfrom torch import nn",
        "def predict(model: nn.Module, loader):\n    model.eval()\n    return [model(x) for x in loader]",
        "print(predict(net, loader)[0].argmax(1))",
    )
    (found,) = [
        item for item in check(reading.from_bytes(written(*cells), PATH), usual()) if item.code == "TL301"
    ]
    assert found.fix is not None and found.fix.applicability is Applicability.SAFE
    script = reading.from_bytes("\n".join(cells).encode(), Path("a.py"))
    (found,) = [item for item in check(script, usual()) if item.code == "TL301"]
    assert found.fix is not None and found.fix.applicability is Applicability.UNSAFE


def test_every_broken_cell_is_told() -> None:
    found = check(reading.read(NOTEBOOKS / "broken_cells.ipynb"), usual())
    assert places(found) == [("TL001", 3, 2, 12), ("TL001", 4, 1, 19), ("TL001", 5, 2, 12)]


def test_cells_that_are_a_program_only_together_are_broken(use_rules: UseRules) -> None:
    source = notebook("for x in y:", "    print(x)", "z = (1,", "2)")
    assert places(check(source, use_rules())) == [
        ("TL001", 1, 1, 12),
        ("TL001", 3, 1, 5),
        ("TL001", 4, 1, 2),
    ]


# --- checking --------------------------------------------------------------------------------------------


def test_the_order_is_path_cell_place(use_rules: UseRules) -> None:
    found = check(notebook("\n\nbad", "bad; bad", "bad"), use_rules(replacing("bad", "good")))
    assert [place[1:] for place in places(found)] == [(1, 3, 1), (2, 1, 1), (2, 1, 6), (3, 1, 1)]


def test_comments_silence_findings_of_their_cell(use_rules: UseRules) -> None:
    chosen = use_rules(replacing("bad", "good"))
    source = notebook(
        "bad  # noqa: XX101\nbad",
        "bad\n# torchlint: ignore[XX101]",
        "bad\n# torchlint: ignore[XX101]\nbad",
        "f(bad,\n  bad)  # noqa: XX101",
    )
    assert [item[1:3] for item in places(check(source, chosen)) if item[0] == "XX101"] == [
        (1, 2),
        (2, 1),
        (3, 1),
    ]


def test_a_file_ignore_in_any_cell_is_for_the_notebook(use_rules: UseRules) -> None:
    chosen = use_rules(replacing("bad", "good"))
    assert check(notebook("bad", "x = 1", "# torchlint: file-ignore[XX101]\nbad"), chosen) == []


def test_an_unused_suppression_is_removed_from_its_cell(use_rules: UseRules) -> None:
    source = notebook(["x = 1\n", "# torchlint: disable[XX101]"], ["!ls\n", "y = 1  # noqa: XX101"])
    fixed = fix(source, use_rules(replacing("bad", "good")))
    assert [part.text for part in fixed.source.parts] == ["x = 1", "!ls\ny = 1"]
    assert fixed.applied == {"TL002": 2}


def test_empty_lines_of_the_next_cell_stay(use_rules: UseRules) -> None:
    source = notebook("x = 1\n\n# noqa: XX101", "\n\ny = 1")
    fixed = fix(source, use_rules(replacing("bad", "good")))
    assert [part.text for part in fixed.source.parts] == ["x = 1\n", "\n\ny = 1"]


def test_a_message_names_lines_of_cells() -> None:
    source = notebook(
        "import torch\ndef told(loss):\n    print(loss.item())",
        markdown("# Training"),
        "model = torch.nn.Linear(2, 2).cuda()\nfor x in loader:\n    loss = model(x).sum()\n"
        "    loss.backward()\n    told(loss)",
    )
    (message,) = (item.message for item in check(source, usual()) if item.code == "TL202")
    assert "(called from line 5 of cell 3)" in message


# --- edits -----------------------------------------------------------------------------------------------


def fitted(source: Source, start: int, end: int, content: str) -> tuple[Edit, ...] | None:
    found = source.fitted(Fix("Go", (Edit(Span(start, end), content),), Applicability.SAFE))
    return None if found is None else found.edits


@pytest.mark.parametrize(
    ("start", "end", "content", "expected"),
    [
        (0, 1, "y", (0, 1, "y")),
        (6, 12, "", (5, 11, "")),  # the last line of the first cell, with the newline behind it
        (6, 12, "z = 1\n", (6, 11, "z = 1")),
        (0, 12, "", (0, 11, "")),
        (8, 12, "", None),  # would join the cells
        (6, 12, "z", None),
        (6, 13, "", None),
        (6, 20, "", None),
        (12, 12, "import a\n", None),  # above `%%time`
        (12, 13, "", None),
        (19, 19, "import a\n", (19, 19, "import a\n")),
        (25, 25, "import a\n", (25, 25, "import a\n")),  # above a line magic
        (25, 25, "import a", None),
        (25, 31, "", None),
        (27, 28, "", None),
        (28, 28, "\nx", (28, 28, "\nx")),
        (28, 28, "x", None),
        (36, 42, "c", None),  # in `files = !ls a`
        (29, 29, "x\n", (29, 29, "x\n")),
    ],
)
def test_edits_stay_in_their_cell_and_off_what_is_masked(
    start: int, end: int, content: str, expected: tuple[int, int, str] | None
) -> None:
    source = notebook("a = 1\nb = 2", "%%time\nc = 1\n!ls\nf = !ls a")
    assert source.text == "a = 1\nb = 2\n######\nc = 1\n###\nf = _____\n"
    found = fitted(source, start, end, content)
    wanted = expected and (Edit(Span(expected[0], expected[1]), expected[2]),)
    assert found == wanted


def test_an_edit_before_an_indented_cell_is_withheld() -> None:
    source = notebook("  a = 1")
    begin = source.text.index("  a")
    assert fitted(source, 0, 0, "x\n") is None
    assert fitted(source, begin, begin, "  x\n") is not None


def test_a_fix_that_straddles_cells_is_withheld(use_rules: UseRules) -> None:
    def whole(node: cst.Name, module: Module) -> tuple[Edit, ...]:
        return (Edit(Span(0, len(module.tree.text)), "good\n"),)

    found = check(notebook("bad", "x = 1"), use_rules(names("bad", whole)))
    assert [(item.code, item.fix, item.help) for item in found] == [("XX101", None, "Go")]


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("bad", False),
        ("x = 1\nbad  # shown", False),
        ("%%time\n  y = 1\n  bad", False),
        ("bad;", True),
        ("bad ; # not shown", True),
        ("bad\nx = 1", True),
        ("for y in x:\n    bad", True),
        ("bad\nx", True),
        ("f(\n  bad)", False),
    ],
)
def test_a_fix_that_hides_the_result_of_a_cell_is_withheld(
    cell: str, offered: bool, use_rules: UseRules
) -> None:
    def wrapped(node: cst.Name, module: Module) -> tuple[Edit, ...]:
        place = module.tree.span(node)
        start = module.tree.text.rfind("\n", 0, place.start) + 1
        text = module.tree.text[start : place.start]
        indent = text[: len(text) - len(text.lstrip())]
        return (Edit(Span(start + len(indent), start + len(indent)), "if x: "),)

    source = notebook("x = 1", cell)
    if "for" in cell or "f(" in cell:
        chosen = use_rules(names("bad", lambda node, module: (Edit(Span(6, 6), "x = "),)))
    else:
        chosen = use_rules(names("bad", wrapped))
    assert [item.fix is not None for item in check(source, chosen)] == [offered]


def test_a_fix_that_breaks_a_cell_is_withheld(use_rules: UseRules) -> None:
    def indented(node: cst.Name, module: Module) -> tuple[Edit, ...]:
        places = [found.start() for found in re.finditer("bad", module.tree.text)]
        return (
            Edit(Span(places[0], places[0]), "if x:\n    "),
            *(Edit(Span(at, at), "    ") for at in places[1:]),
        )

    straddling = check(notebook("x = 1", "bad\nx", "bad\nx"), use_rules(names("bad", indented)))
    assert [item.fix for item in straddling] == [None, None]
    within = check(notebook("x = 1", "bad\nbad\nx"), use_rules(names("bad", indented)))
    assert all(item.fix is not None for item in within)


def test_autograd_is_switched_off_by_the_cell() -> None:
    """A block in the next cell does not take in what this one computes."""
    model = "import torch\nmodel = torch.load('model.pt')\nmodel.eval()"
    shown = "with torch.no_grad():\n    print(output)"
    source = notebook(model, "output = model(images)", shown)
    fixed = fix(source, LintSettings(("TL301",), frozenset({"TL301"}), unsafe_fixes=True)).source
    wrapped = "with torch.no_grad():\n    output = model(images)"
    assert [part.text for part in fixed.parts[1:]] == [wrapped, shown]


def test_a_result_may_be_written_otherwise_or_taken_out(use_rules: UseRules) -> None:
    def without(node: cst.Name, module: Module) -> tuple[Edit, ...]:
        start = module.tree.span(node).start
        return (Edit(Span(start, start + 4), ""),)

    source = notebook("x = 1\nbad")
    assert [part.text for part in fix(source, use_rules(replacing("bad", "good()"))).source.parts] == [
        "x = 1\ngood()"
    ]
    assert [part.text for part in fix(source, use_rules(names("bad", without))).source.parts] == ["x = 1"]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (
            ["%matplotlib inline\n", "import os"],
            ["%matplotlib inline\n", "import os\n", "\n", "import torch"],
        ),
        (["%%time\n", "import PIL\n", "x = 1"], ["%%time\n", "import PIL\n", "import torch\n", "x = 1"]),
        (["%%time\n", "x = 1"], ["%%time\n", "import torch\n", "\n", "x = 1"]),
        (
            ["import torch.nn\n", "%matplotlib inline"],
            ["import torch\n", "import torch.nn\n", "%matplotlib inline"],
        ),
    ],
)
def test_an_added_import_stands_with_the_imports_and_never_above_a_cell_magic(
    first: list[str], expected: list[str], use_rules: UseRules
) -> None:
    def adding(node: cst.Name, module: Module) -> tuple[Edit, ...]:
        return (Edit(module.tree.span(node), "torch"), *add_import(module, "import torch"))

    fixed = fix(notebook(first, ["bad"], indent=1), use_rules(names("bad", adding)))
    cells = json.loads(fixed.source.to_bytes())["cells"]
    assert cells[0]["source"] == expected
    assert cells[1]["source"] == ["torch"]


def test_fixes_of_several_rounds_keep_the_cells_apart(use_rules: UseRules) -> None:
    chain = use_rules(replacing("bad", "more = 1\nbetter"))
    source = notebook(["%%time\n", "bad\n", "x = !ls\n", "bad"], markdown("# between"), "y?\nbad", "bad\n!ls")
    fixed = fix(source, chain)
    assert [part.text for part in fixed.source.parts] == [
        "%%time\nmore = 1\nbetter\nx = !ls\nmore = 1\nbetter",
        "y?\nmore = 1\nbetter",
        "more = 1\nbetter\n!ls",
    ]
    read = json.loads(fixed.source.to_bytes())["cells"]
    assert read[0]["source"][-2:] == ["more = 1\n", "better"]
    assert read[2]["source"] == "y?\nmore = 1\nbetter"


def test_a_fix_that_breaks_a_cell_is_not_applied(use_rules: UseRules) -> None:
    broken = fix(notebook("bad", "x = 1"), use_rules(replacing("bad", "(")))
    assert broken.text == "bad\nx = 1\n"
    assert [item.code for item in broken.diagnostics] == ["TL000", "XX101"]


def test_another_text_without_edits_has_no_cells() -> None:
    source = notebook("x = 1")
    with pytest.raises(ValueError, match="cannot be told apart"):
        source.encode("x = 12\n")
    with pytest.raises(ValueError, match="no JSON"):
        Notebook.from_cells([(1, "x")], PATH).to_bytes()


def test_cells_of_an_editor_are_checked(use_rules: UseRules) -> None:
    source = Notebook.from_cells([(2, "%pwd\nbad"), (5, "  bad")], PATH)
    assert places(check(source, use_rules(replacing("bad", "good")))) == [
        ("XX101", 2, 2, 1),
        ("XX101", 5, 1, 3),
    ]


# --- writing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            r'"source":"x = 1\nbad\n# \u00e9\u2190 <\/a>\ty"',
            r'"source":"x = 1\ngood\n# \u00e9\u2190 <\/a>\ty"',
        ),
        (r'"source":["bad # \u00fc \/ \u003c\n" , "y"]', r'"source":["good # \u00fc \/ \u003c\n" , "y"]'),
        ('"source": [\n"bad;\\n",\n\t"y"\n]', '"source": [\n"good;\\n",\n\t"y"\n]'),
        (r'"source":["x\ny\n","bad"]', r'"source":["x\ny\n","good"]'),
        (r'"source":[ "bad" ]', r'"source":[ "good" ]'),
        (r'"source":"\u0062ad"', r'"source":"good"'),
        (r'"source":["# \ud83d\ude00 \udfff\n","bad"]', r'"source":["# \ud83d\ude00 \udfff\n","good"]'),
        (r'"source":["f(\"\ud800\", bad)"]', r'"source":["f(\"\ud800\", good)"]'),
    ],
)
def test_only_what_changed_is_spelt_anew(before: str, after: str, use_rules: UseRules) -> None:
    frame = '{"nbformat":4, "cells":[{"cell_type":"code", %s, "outputs":[ ]}]}\r\n'
    fixed = fix(reading.from_bytes((frame % before).encode(), PATH), use_rules(replacing("bad", "good")))
    assert fixed.source.to_bytes().decode() == frame % after


@pytest.mark.parametrize(
    ("ascii_only", "raw", "spelt"),
    [(True, "é", "\\u2190"), (False, "é", "←"), (False, "e", "←")],
)
def test_new_characters_are_spelt_as_the_notebook_spells_them(
    ascii_only: bool, raw: str, spelt: str, use_rules: UseRules
) -> None:
    data = written(["bad"], markdown(raw), ensure_ascii=ascii_only)
    fixed = fix(reading.from_bytes(data, PATH), use_rules(replacing("bad", "'←'")))
    assert fixed.source.to_bytes().decode() == data.decode().replace("bad", f"'{spelt}'")


@pytest.mark.parametrize(
    ("source", "made"),
    [
        (["bad"], '"source": ["one\\n", "two"]'),
        (["x\n", "bad"], '"source": ["x\\n", "one\\n", "two"]'),
        (["bad\n", "x"], '"source": ["one\\n", "two\\n", "x"]'),
        ("bad", '"source": "one\\ntwo"'),
    ],
)
def test_new_lines_are_written_as_the_others(source: str | list[str], made: str, use_rules: UseRules) -> None:
    fixed = fix(notebook(source), use_rules(replacing("bad", "one\ntwo")))
    assert made in fixed.source.to_bytes().decode()


def test_a_cell_that_loses_all_its_lines_is_empty(use_rules: UseRules) -> None:
    def emptied(node: cst.Name, module: Module) -> tuple[Edit, ...]:
        start = module.tree.span(node).start
        return (Edit(Span(start, start + 4), ""),)

    fixed = fix(notebook(["bad"], ["x = 1\n", "bad"], indent=1), use_rules(names("bad", emptied)))
    assert [cell["source"] for cell in json.loads(fixed.source.to_bytes())["cells"]] == [[], ["x = 1"]]


LINES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\x00") | st.sampled_from('é"\\/<\t😀'),
    max_size=12,
).map(lambda text: f"# {text}")
SOURCES = st.lists(LINES, max_size=5).map("\n".join) | st.sampled_from(["!ls", "%%html\n<p>", "x?\n\n"])


@st.composite
def books(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """The JSON of a notebook, spelt in some way, and the sources of its code cells."""
    sources = draw(st.lists(SOURCES, min_size=1, max_size=4))
    listed = draw(st.booleans())
    cells: list[Any] = [
        source.splitlines(True) if listed and "\x0b" not in source else source for source in sources
    ]
    outputs = draw(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.floats(), max_size=2))
    data = written(
        *cells,
        {"cell_type": "raw", "metadata": {"x": outputs}, "source": ""},
        indent=draw(st.sampled_from([None, 1, 2, "\t"])),
        ensure_ascii=draw(st.booleans()),
        sort_keys=draw(st.booleans()),
    )
    ends = draw(st.sampled_from([b"", b"\n", b"\r\n"]))
    newline = draw(st.sampled_from([b"\n", b"\r\n"]))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + data.replace(b"\n", newline) + ends, sources


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(books(), st.data())
def test_a_line_that_is_edited_is_all_that_differs(
    book: tuple[bytes, list[str]], data: st.DataObject
) -> None:
    written_before, sources = book
    source = reading.from_bytes(written_before, PATH)
    assert isinstance(source, Notebook)
    assert source.to_bytes() == written_before
    assert [part.text for part in source.parts] == [text for text in sources if not text.startswith("%%")]
    marks = [at for at in range(len(source.text)) if source.text.startswith("# ", at)]
    if not marks:
        return
    at = data.draw(st.sampled_from(marks))
    edit = Edit(Span(at + 1, at + 2), data.draw(st.sampled_from(["-", "–", '"\\', ""])))
    changed = source.with_text(apply(source.text, [edit]), [edit])
    number = source.locate(at).cell
    assert number is not None
    after = changed.to_bytes()
    read, before = json.loads(after.decode("utf-8-sig")), json.loads(written_before.decode("utf-8-sig"))
    part = changed.part(number)
    assert part is not None and "".join(read["cells"][number - 1]["source"]) == part.text
    if isinstance(read["cells"][number - 1]["source"], list):
        lines = zip(read["cells"][number - 1]["source"], before["cells"][number - 1]["source"], strict=True)
        assert sum(one != other for one, other in lines) == 1
    head = next((i for i, (a, b) in enumerate(zip(written_before, after, strict=False)) if a != b), 0)
    tail = len(edit.content.encode()) * 6 + 2
    assert written_before[head + 1 :].endswith(after[head + tail :])


# --- runs ------------------------------------------------------------------------------------------------


def test_a_notebook_is_fixed_on_disk(tmp_path: Path, use_rules: UseRules) -> None:
    path = tmp_path / "nb.ipynb"
    data = written(["import os\n", "bad"], "!ls", indent=1) + b"\n"
    path.write_bytes(data)
    (result,) = run([path], lambda _: use_rules(replacing("bad", "good")), Mode(fix=True))
    assert (result.written, path.read_bytes()) == (True, data.replace(b"bad", b"good"))


def test_a_diff_shows_cells(use_rules: UseRules) -> None:
    data = written("x = 1", markdown("bad"), ["!ls\n", "bad\n", "y"], "bad\n")
    result, _ = run_text(data, PATH, use_rules(replacing("bad", "good")), Mode(diff=True))
    assert result.diff == (
        "--- nb.ipynb:cell 3\n+++ nb.ipynb:cell 3\n@@ -1,3 +1,3 @@\n !ls\n-bad\n+good\n y\n"
        "--- nb.ipynb:cell 4\n+++ nb.ipynb:cell 4\n@@ -1 +1 @@\n-bad\n+good\n"
    )


# --- places and edits in the file --------------------------------------------------------------------


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_character_is_found_in_the_json(path: Path) -> None:
    source = reading.read(path)
    lines = NEWLINE.split(source.stored)
    for part in source.parts:
        for at, character in enumerate(part.text):
            if character.isascii() and character.isalnum():
                place = source.in_file(part.start + at)
                assert lines[place.row - 1][place.column - 1] == character, (part.cell, at)


def test_a_place_behind_escapes_and_at_the_end_of_a_cell() -> None:
    source = notebook('x = "ä\\t\\U0001f600"\n', ["y = 1\n", "z = '\"'"], indent=1)
    text, lines = source.text, source.stored.split("\n")
    quote = source.in_file(text.index('"', text.index("ä")))
    assert lines[quote.row - 1][quote.column - 1 :].startswith('\\"\\n"')
    end = source.in_file(text.index("'\"'") + 3)
    assert lines[end.row - 1][end.column - 1 :] == '"'


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_fix_of_a_cell_is_an_edit_of_the_file(path: Path) -> None:
    source, tried = reading.read(path), 0
    for item in check(source, usual()):
        if item.fix is not None and item.fix.own:
            tried += 1
            fixed = source.with_text(apply(source.text, item.fix.own), item.fix.own)
            made = apply(source.stored, source.edits_in_file(item.fix.own))
            assert made.encode() == fixed.to_bytes().removeprefix(codecs.BOM_UTF8)
            assert fixed.stored == made
    assert tried or path.stem.endswith((".fixed", "_cells", "_kernel"))


def test_what_an_editor_holds_has_no_places_in_a_file() -> None:
    cells = Notebook.from_cells([(2, "x = 1")], PATH)
    assert (cells.in_file(3), cells.edits_in_file([Edit(Span(0, 1), "y")])) == (Position(1, 1), ())
