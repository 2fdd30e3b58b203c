"""Scripts in cells: magics are masked, places are those of the file, and everything is written back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchlint import reading
from torchlint.checker import check
from torchlint.diagnostics import Applicability, Edit, Fix, Span
from torchlint.fixer import fix
from torchlint.options import LintSettings
from torchlint.registry import rules
from torchlint.runner import Mode, difference, run_text
from torchlint.scripts import Script
from torchlint.source import Source

PATH = Path("train.py")
SCRIPT = """\
# %% [markdown]
# # Training

# %%
%matplotlib inline
!pip install torch
import torch

# %%
%%bash
echo "it's
ls -l

# %% training
files = !ls
for batch in loader:
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.empty_cache()
    %time x = 1

# %%
torch?
"""


def read(text: str) -> Source:
    return reading.from_bytes(text.encode(), PATH)


def settings(*codes: str) -> LintSettings:
    return LintSettings(rules=codes or tuple(rules()), fixable=frozenset(rules()))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_magics_are_masked_and_written_back(newline: str) -> None:
    text = SCRIPT.replace("\n", newline)
    source = read(text)
    assert isinstance(source, Script)
    ast.parse(source.text)
    assert (len(source.text), source.stored) == (len(text), text)
    assert source.to_bytes() == text.encode()


def test_a_finding_has_its_place_and_its_fix_keeps_the_magics() -> None:
    source = read(SCRIPT)
    (item,) = [item for item in check(source, settings("TL601")) if item.code == "TL601"]
    assert (item.start.row, item.start.column, item.cell) == (21, 5, None)
    fixed = fix(source, settings("TL601"))
    assert fixed.source.to_bytes().decode() == SCRIPT.replace("    torch.cuda.empty_cache()\n", "")
    diff = difference(source, fixed.source)
    assert "     %time x = 1\n" in diff and "-    torch.cuda.empty_cache()\n" in diff


def test_a_comment_goes_into_the_script_as_it_is() -> None:
    _, source = run_text(SCRIPT.encode(), PATH, settings("TL601"), Mode(noqa=""))
    assert source is not None
    wanted = SCRIPT.replace("empty_cache()\n", "empty_cache()  # noqa: TL601\n")
    assert source.to_bytes().decode() == wanted


def test_no_fix_touches_a_magic() -> None:
    source = read(SCRIPT)
    at = SCRIPT.index("%time")
    inside = Fix("Change it", (Edit(Span(at, at + 5), "x"),), Applicability.SAFE)
    beside = Fix("Change it", (Edit(Span(at + 10, at + 11), "2"),), Applicability.SAFE)
    assert source.fitted(inside) is None
    assert source.fitted(beside) is beside


@pytest.mark.parametrize(
    "text",
    [
        "# %%\nx = 1\n",  # jupytext comments magics out, so that this is Python
        "# %%\n# %matplotlib inline\nx = (\n    1\n    % 2\n)\n",
        "%matplotlib inline\nx = 1\n",  # no cells
        "# %%\nx = = 1\n",
        "s = '''\n# %%\n%time\n'''\n",
    ],
)
def test_other_files_are_as_they_were(text: str) -> None:
    source = read(text)
    assert type(source) is Source
    assert source.text == text


def test_an_error_in_a_cell_is_found_at_its_line() -> None:
    (item,) = check(read("# %%\n%time x\n\n# %%\nx = = 1\n"), settings())
    assert (item.code, item.start.row) == ("TL001", 5)
