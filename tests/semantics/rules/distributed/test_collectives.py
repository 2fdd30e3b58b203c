"""Which calls make the ranks meet, what they exchange, and over which back end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest
import torch.distributed

from torchlint.rules.distributed.collectives import (
    FUNCTIONS,
    Collectives,
    collective,
    goes_over_accelerator,
    groups,
)
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name

Model = Callable[[str], Module]

HEAD = """
import functools
import einops
import torch
import torch.distributed as dist
import horovod.torch as hvd
import ignite.distributed as idist
from accelerate import Accelerator
from torch.distributed import all_reduce as reduce_all, nn as dist_nn
from torch.distributed.nn.functional import all_gather as gather_with_grad
from utils import reduce_dict, reduce_mean
import misc

"""

# What is called, what is sent, and what holds the outcome: itself, or an argument.
COLLECTIVES = [
    ("dist.all_reduce(x)", "all_reduce", "x", "x"),
    ("reduce_all(tensor=x, op=dist.ReduceOp.MAX)", "all_reduce", "x", "x"),
    ("torch.distributed.distributed_c10d.all_reduce(x)", "all_reduce", "x", "x"),
    ("dist.reduce(x, 0)", "reduce", "x", "x"),
    ("dist.all_gather(xs, x)", "all_gather", "x", "xs"),
    ("dist.all_gather_into_tensor(output_tensor=y, input_tensor=x)", "all_gather_into_tensor", "x", "y"),
    ("dist.all_gather_object(ys, o)", "all_gather_object", "o", "ys"),
    ("dist.reduce_scatter_tensor(y, x)", "reduce_scatter_tensor", "x", "y"),
    ("dist_nn.all_reduce(x)", "all_reduce", "x", None),
    ("gather_with_grad(x)", "all_gather", "x", None),
    ("hvd.allreduce(x, name='x')", "allreduce", "x", None),
    ("idist.all_reduce(x)", "all_reduce", "x", None),
    ("Accelerator().gather(x)", "gather", "x", None),
    ("accelerator.gather_for_metrics(x)", "gather_for_metrics", "x", None),
]
HELPERS = [
    ("def average(t):\n    dist.all_reduce(t)\n    return t / 2\n\naverage(x)", "x", None),
    ("def average(t):\n    dist.all_reduce(t)\n    t /= 2\n\naverage(x)", "x", "x"),
    (
        "def inner(t):\n    dist.all_reduce(t)\n\ndef outer(t):\n    inner(t)\n    return t\n\nouter(x)",
        "x",
        None,
    ),
    (
        "def inner(t):\n    dist.all_reduce(t)\n\ndef f(n):\n    u = n + 1\n    inner(u)\n    return u\nf(x)",
        "x",
        None,
    ),
    ("def both(n, t):\n    dist.all_reduce(t)\n\nboth(2, x)", "x", "x"),
    (
        "def mean(t):\n    u = t.clone()\n    dist.all_reduce(u)\n    v = u / 2\n    return v\n\nmean(x)",
        "x",
        None,
    ),
    ("def mean(t):\n    ts = [t] * 2\n    dist.all_gather(ts, t)\n    return sum(ts)\n\nmean(x)", "x", None),
    ("reduce_dict(x)", "x", None),
    ("misc.all_reduce_mean(x)", "x", None),
]
OTHERS = [
    "def f(x):\n    y = x + 1\n    dist.all_reduce(y)\n    print(y)\n    return x\n\nf(x)",
    "def f(x):\n    y = x + 1\n    dist.all_reduce(y)\n    print(y)\n\nf(x)",
    "functools.reduce(f, x)",
    "einops.reduce(x, 'a b -> a', 'mean')",
    "torch.gather(x, 0, y)",
    "x.gather(0, y)",
    "reduce_mean(x)",
    "dist.get_rank()",
    "dist.all_gather(x)",
    "self.reduce(x)",
    "def f(model):\n    for p in model.parameters():\n        dist.all_reduce(p.grad)\n\nf(x)",
    "def f(x):\n    g(x).backward()\n    dist.all_reduce(x)\n    return x\n\nf(x)",
    "def f(x):\n    dist.all_reduce(state.total)\n    return x\n\nf(x)",
    "def g():\n    dist.all_reduce(y)\n\ndef f(x):\n    g()\n    return x\n\nf(x)",
    "def f(x):\n    return f(x)\n\nf(x)",
]


def last_call(module: Module) -> cst.Call:
    """The call that stands on the last line."""
    line = module.tree.root.body[-1]
    assert isinstance(line, cst.SimpleStatementLine)
    statement = line.body[0]
    assert isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call)
    return statement.value


@pytest.mark.parametrize(("code", "name", "sent", "received"), COLLECTIVES, ids=lambda value: str(value))
def test_a_collective_operation(
    semantic_model: Model, code: str, name: str, sent: str, received: str | None
) -> None:
    module = semantic_model(HEAD + code + "\n")
    found = collective(module, last_call(module))
    assert found is not None and found.name == name
    assert found.sent is not None and module.source(found.sent) == sent
    assert (found.received and module.source(found.received)) == received


@pytest.mark.parametrize(("code", "sent", "received"), HELPERS)
def test_a_helper_is_one_as_well(semantic_model: Model, code: str, sent: str, received: str | None) -> None:
    module = semantic_model(HEAD + code + "\n")
    found = Collectives.of(module).reduction(last_call(module))
    assert found is not None and found.sent is not None and module.source(found.sent) == sent
    assert (found.received and module.source(found.received)) == received


@pytest.mark.parametrize("code", OTHERS)
def test_other_calls_are_none(semantic_model: Model, code: str) -> None:
    module = semantic_model(HEAD + code + "\n")
    assert Collectives.of(module).reduction(last_call(module)) is None


@pytest.mark.parametrize("code", ["dist.barrier()", "accelerator.wait_for_everyone()"])
def test_a_barrier_exchanges_nothing(semantic_model: Model, code: str) -> None:
    module = semantic_model(HEAD + code + "\n")
    found = collective(module, last_call(module))
    assert found is not None and found.is_barrier


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_table_is_as_torch_declares_it(name: str) -> None:
    function = getattr(torch.distributed, name, None) or getattr(torch.distributed.distributed_c10d, name)
    parameters = list(inspect.signature(inspect.unwrap(function)).parameters)
    shape = FUNCTIONS[name]
    for named in (shape.sent, shape.received, ("group", shape.group)):
        if named is not None and named[1] is not None and name != "_all_gather_base":
            assert parameters[named[1]] == named[0]


# --- process groups -------------------------------------------------------------------------------------

GROUPS = [
    ("dist.init_process_group('gloo')", "gloo", False),
    ("dist.init_process_group(backend='NCCL')", "nccl", False),
    ("dist.init_process_group(dist.Backend.GLOO)", "gloo", False),
    ("dist.init_process_group()", None, False),
    ("dist.init_process_group(backend=named)", None, False),
    ("dist.init_process_group('nccl' if torch.cuda.is_available() else 'gloo')", None, False),
    ("name = 'gloo'\ndist.init_process_group(name)", "gloo", False),
    ("dist.init_process_group(init_method='env://', backend=args.dist_backend)", "gloo", True),
    ("dist.init_process_group(args.other)", None, False),
    ("def go(b='gloo'):\n    dist.init_process_group(b)\n\ngo()", "gloo", False),
    ("def go(b):\n    dist.init_process_group(b)\n\ngo('gloo')", "gloo", False),
    ("def go(b):\n    dist.init_process_group(b)\n\ngo('gloo')\ngo('nccl')", None, False),
    ("dist.new_group([0, 1], None, 'gloo')", "gloo", False),
    ("import deepspeed\ndeepspeed.init_distributed('gloo')", "gloo", False),
]
OPTION = "parser.add_argument('--dist-backend', default='gloo', help='back end')\n"


@pytest.mark.parametrize(("code", "backend", "optional"), GROUPS)
def test_the_back_end_of_a_group(
    semantic_model: Model, code: str, backend: str | None, optional: bool
) -> None:
    (group,) = groups(semantic_model(HEAD + OPTION + code + "\n"))
    assert (group.backend, group.optional) == (backend, optional)


def test_a_group_of_one_rank(semantic_model: Model) -> None:
    code = "dist.init_process_group('gloo', rank=0, world_size={})\n"
    module = semantic_model(HEAD + code.format(1) + code.format("n"))
    assert [group.alone for group in groups(module)] == [True, False]


def test_which_tensors_go_over_which_group(semantic_model: Model) -> None:
    code = """
    dist.init_process_group("nccl")
    slow = dist.new_group(backend="gloo")
    t = torch.ones(3)
    dist.all_reduce(t, group=slow)
    dist.all_gather_object(found, t.cuda(), group=slow)
    u = torch.ones(3, device="cuda")
    dist.all_reduce(u)
    """
    module = semantic_model(HEAD + dedent(code))
    fast, slow = groups(module)
    place = goes_over_accelerator(module, fast)
    assert isinstance(place, cst.Call) and last_name(place.args[0].value) == "u"
    assert goes_over_accelerator(module, slow) is None
