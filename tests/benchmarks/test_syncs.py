"""What the linter calls a wait is what a GPU was seen to wait for."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.waits import WAITS, Row, behaviour, program, rows
from torchlint.checker import check
from torchlint.options import LintSettings
from torchlint.semantics.api import results
from torchlint.source import Source
from torchlint.target import Target

RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "syncs.json"
# The state of a logger and of a scaler while a program runs.
UNSEEN = {'quiet.info("%s", s): the level is off', "scaler.get_scale(), before anything was scaled"}
REFUSED = {
    *("x.numpy()", "np.asarray(x)", "np.array(x)", "np.ascontiguousarray(x)", "np.asanyarray(x)"),
    *("np.array(scalars)", "np.asarray(scalars)", "np.max(scalars)", "np.mean(scalars)", "np.sum(scalars)"),
    "np.stack(vectors)",
}
CODES = ("TL202", "TL203", "TL204", "TL205", "TL206", "TL207", "TL210", "TL212", "TL213", "TL214", "TL215")
ROWS = {row.name: row for row in rows()}


@cache
def measured() -> dict[str, dict[str, Any]]:
    """What the newest torch release that was measured did, by the name of the row."""
    held: list[dict[str, Any]] = json.loads(RESULT.read_text(encoding="utf-8"))["rows"]
    newest = max((row["torch"] for row in held), key=lambda version: [*map(int, re.findall(r"\d+", version))])
    return {row["name"]: row for row in held if row["torch"] == newest}


@cache
def found() -> dict[str, list[str]]:
    """What the linter says of each row, put into a loop that trains."""
    text, owners = program(list(ROWS.values()))
    said: dict[str, list[str]] = {}
    settings = LintSettings(rules=CODES, target=Target.parse("2.11"))
    for item in check(Source(Path("rows.py"), text), settings):
        said.setdefault(owners[item.start.row].name, []).append(item.message)
    return said


def test_every_row_was_measured() -> None:
    known = {name: row.code for name, row in ROWS.items()}
    assert {name: row["code"] for name, row in measured().items()}.items() <= known.items()


def waited(name: str) -> bool:
    """Whether a row waits; one that was not measured yet does what its table expects."""
    return bool(measured()[name]["waited"]) if name in measured() else ROWS[name].expected == WAITS


@pytest.mark.parametrize("name", sorted(measured()))
def test_the_tables_say_what_was_measured(name: str) -> None:
    seen = measured()[name]
    assert seen["expected"] == ROWS[name].expected
    if "No module named" in (seen["raises"] or ""):
        assert ROWS[name].kind == "torchvision"
    else:
        assert behaviour(seen) == ROWS[name].expected


def test_the_linter_speaks_of_waits_only_where_one_was_measured() -> None:
    wrong = {
        name: said
        for name, said in found().items()
        if not waited(name) and any(re.search("wait|asks", message) for message in said)
    }
    assert set(wrong) <= UNSEEN


def test_what_raises_is_called_that() -> None:
    refused = {name for name, said in found().items() if any("raises" in message for message in said)}
    assert refused == REFUSED
    assert all(measured()[name]["raises"] for name in refused)


def _called(row: Row) -> set[str]:
    """The names that the code of a row calls, without what stands before the last dot, and with it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(row.code)):
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            for short, full in SHORT.items():
                text = re.sub(rf"^{re.escape(short)}\.", f"{full}.", text)
            names |= {text, text.rpartition(".")[2]}
    return names


SHORT = {"F": "torch.nn.functional", "L": "torch.linalg", "D": "torch.distributions", "np": "numpy"}
CALLED = {row.name: _called(row) for row in ROWS.values()}


def waiting(name: str) -> list[str]:
    return [row for row, names in CALLED.items() if name in names and waited(row)]


@pytest.mark.parametrize("name", sorted(n for n in results.FUNCTION_SYNCS if not n.startswith("numpy.")))
def test_each_function_of_the_facts_waits_in_some_row(name: str) -> None:
    assert waiting(name)


@pytest.mark.parametrize("name", sorted(n for n in results.METHOD_SYNCS if not n.startswith("__")))
def test_each_method_of_the_facts_waits_in_some_row(name: str) -> None:
    assert waiting(name)


@pytest.mark.parametrize("name", sorted(results.SIZED_BY_SCALARS))
def test_each_factory_reads_its_sizes(name: str) -> None:
    assert waiting(name)


@pytest.mark.parametrize(
    "name", sorted({*results.READING_SCALARS, *results.READING_FILL, *results.READING_ARGUMENTS})
)
def test_each_method_reads_its_numbers(name: str) -> None:
    assert waiting(name)


@pytest.mark.parametrize(("name", "twin"), sorted(results.UNCHECKED_TWINS.items()))
def test_each_unchecked_twin_goes_on(name: str, twin: str) -> None:
    assert waiting(name)
    assert not waiting(twin) and any(twin in names for names in CALLED.values())


# Why a wait goes unmentioned, with the rows that this holds for: every other one has to be found.
UNMENTIONED = {
    "the algorithm waits, and there is no other to take its place": {
        "L.ldl_factor_ex(spd)",
        *("torch.cov(x)", "torch.corrcoef(x)", "torch.istft(spectrum, 16, window=window)"),
        *("nn.AdaptiveLogSoftmaxWithLoss", "batch norm with momentum=None, which averages"),
        *("torch.nested.nested_tensor([x, x[:4]], layout=torch.jagged)", "TransformerEncoder, padded"),
        "torch.nested.as_nested_tensor([x, x[:4]], layout=torch.jagged)",
        "torch.nested.nested_tensor([x, x[:4]]).to_padded_tensor(0.0)",
        *(
            "F.ctc_loss, lengths on the device",
            "F.ctc_loss, lengths as tuples",
            "F.ctc_loss, lengths on the host",
        ),
        "F.ctc_loss, labels on the host",
        "pack_padded_sequence(sequence, lengths, batch_first=True, enforce_sorted=False)",
        "D.MultivariateNormal(v[:8], covariance_matrix=spd, validate_args=False)",
        *("torchvision.ops.nms(boxes, v, 0.5)", "torchvision.ops.batched_nms(boxes, v, i, 0.5)"),
        *("lbfgs.step(closure)", "asgd.step()", "adafactor.step()"),
        *("scaled.step(sgd)", "scaler.step(sgd), not unscaled before", "scaled.state_dict()"),
    },
    "it depends on sizes, numbers, states or types that a file often does not show": {
        *('L.matrix_norm(x, "nuc")', "L.matrix_norm(x, 2)", "L.norm(x, 2)", "L.matrix_power(x, -1)"),
        *("torch.isin(i, i)", "torch.sparse_coo_tensor(i[None], v, (64,)).coalesce()", "x.sum(n - 3)"),
        *("[0] * n (a list)", '"-" * n', "scalars == [e + 0 for e in scalars]", "v[i[0]]"),
        *("v.index_put_((m,), w)", "v.index_put((m,), w)"),
        *("h[:] = v", "h.copy_(v, non_blocking=True)", "v.untyped_storage().cpu()"),
        *("plateau.step(s)", 'float(adam_rate.param_groups[0]["lr"])', "SGD with a rate on the device"),
        *(
            "SGD with a rate on the device, one parameter at a time",
            "torch.cuda.empty_cache(), with something cached",
        ),
    },
    "what is moved has to be moved, and how is the business of other rules": {
        *("h.to(device)", "h.cuda(device)", "big.to(device)", "h.to(device, torch.float64)"),
        *("big.to(device, non_blocking=True)", "nn.Linear(8, 8).to(device)", "torch.zeros(3).to(device)"),
        *("pinned.to(device)", "pinned.to(device), blocking", "big_pinned.to(device)", "big_pinned.cuda()"),
        *("torch.from_numpy(array).to(device)", "torch.cuda.FloatTensor([1.0])"),
        *("kb32.to(device)", "mb16.to(device, non_blocking=True)"),
    },
    "it is done for its own sake, and seldom": {
        *("net.cpu()", 'net.to("cpu")', "torch.save(v, buffer)", "torch.save(net.state_dict(), buffer)"),
        *("pickle.dumps(v)", "torch.load of a device tensor", "torch.load(buffer, map_location=device)"),
        "backward under detect_anomaly",
    },
}


def test_every_wait_is_found_or_left_out_for_a_reason() -> None:
    silent = {name for name in ROWS if waited(name) and not found().get(name)}
    assert silent == set().union(*UNMENTIONED.values())


# Waits that the code does not show.
HIDDEN = {
    *("v[n]", "x[n, 0]", "x[0, n]", "v[n] = 1.0", "x.narrow(0, 0, n)", "v.topk(n)", "F.pad(v, (0, n))"),
    *("torch.full((2,), s)", "torch.full_like(v, s)", "v.new_full((2,), s)", "v.masked_fill(m, s)"),
    *("torch.tensor(scalars)", "torch.tensor(1.0, device=device)", "L.inv(x)", "x.inverse()"),
    *("torch.normal(v, v)", "range(n)", "v[:n]", "torch.linspace(s, 1, 5, device=device)", "s in v"),
    *(
        "v.add_(v, alpha=s)",
        "F.dropout(v, t * 0.5)",
        "scalars.index(scalars[2])",
        "x[:, [1, 0]]",
        "v[i] = 1.0",
    ),
    *("x[torch.randperm(8)]", "normal.log_prob(v)", "normal.sample()", "v.histc()", "F.one_hot(i, n + 3)"),
}


def test_hidden_waits_are_found() -> None:
    assert {name for name in HIDDEN if not found().get(name)} == set()
    assert all(waited(name) for name in HIDDEN)


@pytest.mark.parametrize("name", sorted(results.CHECKED_DISTRIBUTIONS))
def test_each_distribution_checks_its_parameters(name: str) -> None:
    assert waiting(f"torch.distributions.{name}")
