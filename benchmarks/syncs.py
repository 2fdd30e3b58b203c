"""Which torch calls make the host wait for the GPU: the facts of the semantic model, measured.

    python -m benchmarks.syncs [-o benchmarks/results/syncs.json]

Every expression is evaluated twice on CUDA tensors under ``torch.cuda.set_sync_debug_mode("error")``, and the
second time counts, as first calls initialise libraries. Exits with 1 if an expression behaves otherwise than
is written here; the same facts are in torchlint/semantics/api/results.py. Needs a CUDA device.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import torch

RESULTS = Path(__file__).parent / "results" / "syncs.json"

WAITS = """
s.item() | bool(s) | int(s) | x.equal(x + 0) | x.allclose(x) | x.cpu() | x.to("cpu") | v.tolist()
v.nonzero() | v.argwhere() | v.masked_select(m) | v[m] | v.unique() | i.unique_consecutive()
i.bincount() | i.bincount(minlength=9) | v.repeat_interleave(i) | torch.where(m) | F.one_hot(i)
torch.combinations(v[:5]) | v.__setitem__(m, w) | v.histc() | torch.isin(i, i) | v[i[0]] | v[i[0]:]
L.cholesky(x) | L.eigh(x) | L.eig(x) | L.inv(x) | L.solve(x, x) | L.lstsq(x, x) | L.pinv(x) | L.svd(x)
L.svdvals(x) | L.matrix_rank(x) | x.inverse() | x.matrix_exp()
torch.tensor(1.0, device="cuda") | torch.zeros(3).to("cuda") | torch.tensor([s, s]) | torch.full((2,), s)
max(v[0], s) | D.Categorical(probs=v) | D.Normal(v, v + 1)
"""
DOES_NOT_WAIT = """
x.to("cpu", non_blocking=True) | v.repeat_interleave(2) | torch.where(m, v, v) | F.one_hot(i, 9)
v.__setitem__(m, 0.0) | v.masked_fill(m, 0.0) | v.masked_scatter(m, v) | v.histc(4, 0.0, 1.0) | v[i]
L.qr(x) | L.det(x) | L.cholesky_ex(x) | L.inv_ex(x) | x.cholesky_inverse() | x.geqrf() | x.lu()
v.multinomial(3) | v.quantile(0.5) | v.median() | v.topk(3) | v.kthvalue(3) | v.max(0) | v.bernoulli()
torch.full((), 1.0, device="cuda") | torch.randperm(64, device="cuda") | torch.nonzero_static(v, size=3)
torch.tensor(s) | v.fill_(s) | torch.isclose(v, v) | D.Normal(v, v + 1, validate_args=False)
torch.zeros(3).pin_memory().to("cuda", non_blocking=True) | torch.nn.utils.clip_grad_norm_([p], 1.0)
"""


def expressions(text: str) -> list[str]:
    """The expressions of a table, which ``|`` and line ends separate."""
    return [part.strip() for line in text.strip().splitlines() for part in line.split("|")]


def operands() -> dict[str, Any]:
    """The names that the expressions use, freshly made."""
    x = torch.rand(8, 8, device="cuda") + 8 * torch.eye(8, device="cuda")
    v = torch.rand(64, device="cuda")
    m = v > 0.5
    p = v.clone().requires_grad_()
    p.grad = v.clone()
    return {
        "x": x @ x.T,
        "v": v,
        "i": torch.randint(0, 5, (64,), device="cuda"),
        "m": m,
        "w": v[m],  # noqa: TL206
        "s": x.sum(),
        "p": p,
        "F": torch.nn.functional,
        "L": torch.linalg,
        "D": torch.distributions,
        "torch": torch,
    }


def waits(expression: str) -> bool:
    """Whether evaluating an expression makes the host wait, the second time."""
    code = compile(expression, expression, "eval")
    waited = False
    for _ in range(2):
        names = operands()
        torch.cuda.synchronize()  # noqa: TL207
        torch.cuda.set_sync_debug_mode("error")
        try:
            eval(code, names)
            waited = False
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
            waited = True
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return waited


@click.command()
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS)
def main(output: Path) -> None:
    """Measure which calls wait for the GPU."""
    measured = {text: waits(text) for text in expressions(WAITS) + expressions(DOES_NOT_WAIT)}
    machine = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name()}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": machine, "waits": measured}, indent=1) + "\n", encoding="utf-8")
    wrong = [text for text, waited in measured.items() if waited is not (text in expressions(WAITS))]
    for text in wrong:
        click.echo(f"{text}: {'waits' if measured[text] else 'does not wait'}")
    click.echo(f"{len(measured) - len(wrong)} of {len(measured)} calls behave as recorded")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.syncs")
