"""Names that were given up: which rule is shown a file that has one, and what the table promises of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.fixer import fix
from torchlint.fixes.callforms import FORMS
from torchlint.options import LintSettings
from torchlint.registry import rules
from torchlint.semantics.api.upgrades import SYMBOLS, UPGRADES, Upgrade
from torchlint.source import Source
from torchlint.target import Target, beside

OURS = [row for row in UPGRADES if row.package in ("torch", "torchvision", "torchaudio") and not row.owner]


def _codes(row: Upgrade) -> list[str]:
    """The rules that may speak of a row, whichever release is the target."""
    codes = ["TL901"] if row.removed is not None else []
    if row.private:
        return [*codes, "TL903"] if row.replacement is not None and row.removed is None else codes
    return [*codes, "TL902"] if row.deprecated is not None else codes


@pytest.mark.parametrize("row", OURS, ids=lambda row: f"{row.symbol} {row.argument}".strip())
def test_a_file_that_has_the_name_is_shown_to_the_rule(row: Upgrade) -> None:
    place, _, last = row.symbol.rpartition(".")
    given = f"{row.argument}=1" if row.argument else ""
    spelt = [f"import {row.symbol.partition('.')[0]}\n{row.symbol}({given})\n"]
    spelt.append(f"from {place} import {last}\n{last}({given})\n")
    for code in _codes(row):
        for text in spelt:
            assert rules()[code].may_fire(text), (code, text)


def test_forms_and_rows_know_of_each_other() -> None:
    assert {row.rewrite for row in SYMBOLS.values() if row.rewrite} == FORMS.keys()


@pytest.mark.parametrize(
    ("torch", "vision", "audio"),
    [
        ("1.7", "0.8", None),
        ("1.13.1", "0.14", None),
        ("2.0", "0.15", "2.0"),
        ("2.4.1", "0.19", "2.4"),
        ("2.13", "0.28", "2.9"),
        ("1.6", "0.7", None),
        ("1.2", None, None),
        ("unknown", None, None),
    ],
)
def test_torch_implies_the_releases_beside_it(torch: str, vision: str | None, audio: str | None) -> None:
    target = Target.parse(torch)
    for package, expected in (("torchvision", vision), ("torchaudio", audio), ("transformers", None)):
        found = beside(target, package).lower
        assert (str(found) if found is not None else None) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.symeig(a, True)", 'torch.linalg.eigh(a, UPLO="U")'),
        ("torch.symeig(a, True, False)", "torch.linalg.eigh(a)"),
        ("torch.symeig(a, False)", None),
        ("torch.symeig(a)[0]", 'torch.linalg.eigvalsh(a, UPLO="U")'),
        ("torch.symeig(a, False).eigenvalues", 'torch.linalg.eigvalsh(a, UPLO="U")'),
        ("torch.symeig(a, upper=False)[0]", None),
        ("torch.symeig(a)[1]", None),
        ("torch.symeig(a, *more)", None),
        ("torch.qr(a, some=flag)", None),
        ("torch.qr(a, out=(q, r))", "torch.linalg.qr(a, out=(q, r))"),
        ("torch.cholesky(a, upper=flag)", "torch.linalg.cholesky(a, upper=flag)"),
        ("torch.matrix_rank(a, 1e-3, True)", "torch.linalg.matrix_rank(a, 1e-3, True)"),
        ("torch.chain_matmul(a)", None),
        ("torch.chain_matmul(*many)", None),
        ("torch.chain_matmul(a, b, out=c)", "torch.linalg.multi_dot([a, b], out=c)"),
        ("torch.solve(b, a)", None),
        ("torch.solve(b, a)[0]", "torch.linalg.solve(a, b)"),
        ("torch.solve(b, a)[1]", None),
        ("torch.lu(a, pivot=False)", None),
        ("torch.range(0, n)", None),
        ("torch.range(0, 5, 2)", None),
        ("torch.range(0, 4, 2, dtype=d)", "torch.arange(0, 6, 2, dtype=d)"),
    ],
)
def test_a_call_is_rewritten_where_both_forms_say_the_same(before: str, after: str | None) -> None:
    codes = ("TL901", "TL902")
    settings = LintSettings(
        rules=codes, fixable=frozenset(codes), unsafe_fixes=True, target=Target.parse("2.15")
    )
    fixed = fix(Source(Path("program.py"), f"import torch\nx = {before}\n"), settings)
    assert fixed.text == f"import torch\nx = {after or before}\n"
    assert bool(fixed.diagnostics) == (after is None)
