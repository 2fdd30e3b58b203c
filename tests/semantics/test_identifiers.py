"""What a file, or a part of it, names."""

from __future__ import annotations

import libcst as cst

from torchlint.options import LintSettings
from torchlint.semantics.identifiers import identifiers, imports, named, options
from torchlint.semantics.model import build
from torchlint.syntax import SyntaxTree

TEXT = '''
import os  # with rank
from torch.distributed import init_process_group

"""About nccl."""
if os.environ.get("LOCAL_RANK") and options["--use-ddp"] != "not an option" and rank.index:
    start(size=2)
'''


def test_what_a_file_names() -> None:
    module = build(SyntaxTree(TEXT), LintSettings())
    assert {"os", "environ", "rank", "index", "start", "size"} <= identifiers(module)
    assert options(module) == {"LOCAL_RANK", "--use-ddp"}
    assert imports(module, ("torch",)) and not imports(module, ("torch.distribute",))


def test_what_a_condition_names() -> None:
    module = build(SyntaxTree(TEXT), LintSettings())
    (branch,) = module.tree.nodes(cst.If)
    expected = ["os", "environ", "get", "LOCAL_RANK", "options", "--use-ddp", "rank", "index"]
    assert list(named(module, branch.test)) == expected
