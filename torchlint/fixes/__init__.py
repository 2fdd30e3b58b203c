"""The edits of which fixes are made: they keep comments and layout, and touch nothing else.

Each function answers with the edits that make one change, or with None where the change cannot be made
without risk; `safe`, `unsafe` and `graded` make a fix of such answers, or none of None. Nothing outside the
edits is touched: comments, layout, tabs and line ends stay as the author wrote them, and new lines take the
line end and the indentation of their neighbours.
"""

from torchlint.fixes.arguments import (
    add_argument,
    filled_by_callers,
    insert_argument,
    remove_argument,
    set_argument,
    unset_argument,
)
from torchlint.fixes.blocks import dissolve_in, end_block_before, wrap, wrap_with
from torchlint.fixes.building import elsewhere, graded, safe, unsafe
from torchlint.fixes.configured import configure, spelt
from torchlint.fixes.expressions import cut_off, replace
from torchlint.fixes.imports import Spelling, add_import, insert_after_imports, remove_import, spell
from torchlint.fixes.layout import Edits
from torchlint.fixes.statements import add_decorator, insert_after, insert_before, remove_statement

__all__ = [
    "Edits",
    "Spelling",
    "add_argument",
    "add_decorator",
    "add_import",
    "configure",
    "cut_off",
    "dissolve_in",
    "elsewhere",
    "filled_by_callers",
    "end_block_before",
    "graded",
    "insert_after",
    "insert_after_imports",
    "insert_argument",
    "insert_before",
    "remove_argument",
    "remove_import",
    "remove_statement",
    "replace",
    "safe",
    "set_argument",
    "spell",
    "spelt",
    "unsafe",
    "unset_argument",
    "wrap",
    "wrap_with",
]
