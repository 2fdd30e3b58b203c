"""Texts of many shapes that can be made as long as wanted.

A shape is a function of a number ``n`` that gives a program with ``n`` of something: calls in a loop,
classes, names, levels of nesting. ``SHAPES`` has all of them by name, each with the number to begin with.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda")
"""
MODEL = """
model = nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
# Star imports and those of the future stand at the top of a file only.
_TOP_LEVEL_ONLY = re.compile(r"^from (?:__future__ import|\S+ import \*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shape:
    """``make(n)`` is a program with ``n`` of something; ``first`` is the smallest number worth measuring."""

    name: str
    first: int
    make: Callable[[int], str]


SHAPES: dict[str, Shape] = {}


def shape(first: int) -> Callable[[Callable[[int], str]], Callable[[int], str]]:
    """Declare a function as a shape."""

    def declare(make: Callable[[int], str]) -> Callable[[int], str]:
        SHAPES[make.__name__] = Shape(make.__name__, first, make)
        return make

    return declare


def _many(n: int, template: str, indent: int = 0) -> str:
    """``template`` for each number below ``n``, which stands there as ``$``, and the one before as ``$<``."""
    lines = textwrap.indent(textwrap.dedent(template).lstrip(), " " * indent)
    return "".join(lines.replace("$<", str(max(i - 1, 0))).replace("$", str(i)) for i in range(n))


def _training(body: str) -> str:
    """A program that trains, with ``body``, already indented by eight, in its loop."""
    return (
        HEAD
        + MODEL
        + "\n\ndef train(loader):\n    for x, y in loader:\n        x, y = x.to(device), y.to(device)\n"
        + "        optimizer.zero_grad()\n        out = model(x)\n        loss = F.mse_loss(out, y)\n"
        + body
        + "        loss.backward()\n        optimizer.step()\n"
    )


# --- loops ---------------------------------------------------------------------------------------------


@shape(500)
def calls_in_loop(n: int) -> str:
    """Many calls in one training loop."""
    return _training(_many(n, "print(loss.item())\n", 8))


@shape(250)
def calls_after_step(n: int) -> str:
    """Many values computed behind the step of one training loop, each kept and read once."""
    body = "loss.backward()\noptimizer.step()\n" + _many(n, "v$ = (out * $).detach().cpu()\nprint(v$)\n")
    return _training("").replace(
        "        loss.backward()\n        optimizer.step()\n", textwrap.indent(body, 8 * " ")
    )


@shape(50)
def loops_in_function(n: int) -> str:
    """Many training loops in one function, each with data of its own."""
    loop = """
    for x, y in loader$:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        print(loss.item())
    """
    parameters = ", ".join(f"loader{i}" for i in range(n))
    return HEAD + MODEL + f"\n\ndef train({parameters}):\n" + _many(n, loop, 4)


@shape(50)
def loops_at_top_level(n: int) -> str:
    """Many training and evaluation loops at the top level, over the same loader."""
    loop = """
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            print(model(x.to(device)).sum().item())
    model.train()
    """
    return HEAD + MODEL + "loader = DataLoader(torch.zeros(8, 3))\n" + _many(n, loop)


@shape(250)
def branches_in_loop(n: int) -> str:
    """Many conditions in one training loop, each of which changes one variable."""
    return _training("        total = 0\n" + _many(n, "if loss > $:\n    total = total + loss.item()\n", 8))


@shape(250)
def throttled_in_loop(n: int) -> str:
    """Many reports in one training loop, each made in few iterations."""
    body = _many(n, "if step % 100 == $:\n    print(model(x).sum().item())\n", 8)
    return _training("        step = step + 1\n" + body).replace("    for x", "    step = 0\n    for x", 1)


@shape(100)
def varied_loop(n: int) -> str:
    """One long training loop, whose statements are of many kinds."""
    body = """
    h$ = model(x + $).relu()
    if loss.item() > $:
        seen.append(h$.detach().cpu())
    total += h$.mean()
    weights["w$"] = torch.tensor([$, 1.0], device=device) * h$
    for name, parameter in model.named_parameters():
        parameter.grad.clamp_(-$, $)
    kept = [value.item() for value in h$]
    with torch.no_grad():
        best = max(best, weights["w$"].sum().item())
    print(f"{total.item():.3f} {best}", kept)
    """
    made = "    total, best, seen, weights = 0, 0, [], {}\n    for x"
    return _training(_many(n, body, 8)).replace("    for x", made, 1)


@shape(100)
def tries_in_loop(n: int) -> str:
    """Many ``try`` blocks in one training loop."""
    body = """
    try:
        out = model(x * $)
        print(out.sum().item())
    except RuntimeError as error:
        out = x
        print(error)
    finally:
        torch.cuda.synchronize()
    """
    return _training(_many(n, body, 8))


@shape(250)
def comprehensions(n: int) -> str:
    """Many comprehensions in one training loop, each over what the one before gave."""
    return _training(
        "        v0 = [loss]\n" + _many(n, "v$ = [v.item() + model(x).sum() for v in v$< if v > $]\n", 8)
    )


# --- functions -----------------------------------------------------------------------------------------


@shape(50)
def training_functions(n: int) -> str:
    """Many functions that train."""
    function = """

    def train$(loader, model, optimizer):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            print(loss.item())
    """
    return HEAD + _many(n, function)


@shape(100)
def evaluating_functions(n: int) -> str:
    """Many functions that evaluate, some with the graph."""
    function = """

    def evaluate$(loader, model):
        model.eval()
        total = 0
        for x, y in loader:
            total += F.mse_loss(model(x.to(device)), y.to(device))
        return total
    """
    return HEAD + _many(n, function)


@shape(250)
def chain_of_calls(n: int) -> str:
    """A deep chain of functions, the last of which waits, called from a training loop."""
    chain = _many(n, "\n\ndef f$(loss):\n    f$<(loss)\n").replace(
        "    f0(loss)\n", "    print(loss.item())\n", 1
    )
    return _training(f"        f{n - 1}(loss)\n") + chain


@shape(250)
def chain_of_results(n: int) -> str:
    """A deep chain of functions, each of which computes with what the one before returns."""
    chain = _many(n, "\n\ndef f$(x):\n    y = f$<(x)\n    return torch.relu(y) + $\n")
    return _training(f"        print(f{n - 1}(loss).item())\n") + chain.replace("y = f0(x)", "y = x", 1)


@shape(50)
def chain_of_stars(n: int) -> str:
    """A deep chain of functions, each of which hands its stars on to the one before in two places."""
    last = "\n\ndef f0(value, scale):\n    print(value.item(), scale)\n"
    chain = "".join(
        f"\n\ndef f{i}(*args, **kwargs):\n    if args:\n        return f{i - 1}(*args, **kwargs)\n"
        f"    return f{i - 1}(*args, **kwargs)\n"
        for i in range(1, n)
    )
    return _training(f"        f{n - 1}(loss, scale=2)\n") + last + chain


@shape(50)
def mutual_recursion(n: int) -> str:
    """Functions that call one another in circles."""
    functions = "".join(
        f"\n\ndef f{i}(x, depth):\n    if depth:\n        x = f{(i + 1) % n}(x, depth - 1)\n"
        f"    else:\n        x = f{(i + 7) % n}(x.relu(), depth)\n    print(x.item())\n    return x\n"
        for i in range(n)
    )
    return _training("        f0(loss, 3)\n") + functions


@shape(250)
def callers_of_one_function(n: int) -> str:
    """One function that is called from many others."""
    callers = _many(
        n, "\n\ndef caller$(loader):\n    for x in loader:\n        report(model(x.to(device)))\n"
    )
    return HEAD + MODEL + "\n\ndef report(loss):\n    print(loss.item())\n" + callers


@shape(250)
def calls_of_one_function(n: int) -> str:
    """One function that is called many times in one loop."""
    report = "\n\ndef report(value):\n    print(value.item())\n    return value\n"
    return _training(_many(n, "r$ = report(loss * $)\n", 8)) + report


@shape(100)
def nested_functions(n: int) -> str:
    """Many closures in one function."""
    closure = """
    def closure$():
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        return loss
    optimizer.step(closure$)
    """
    return HEAD + MODEL + "\n\ndef train(x):\n" + _many(n, closure, 4)


@shape(250)
def lambdas(n: int) -> str:
    """Many lambdas and comprehensions at the top level."""
    return HEAD + MODEL + _many(n, "f$ = lambda x: model(x).item()\ng$ = [f$(x) for x in range($)]\n")


@shape(100)
def decorators(n: int) -> str:
    """Many decorators, each with a function inside that has the same name in all of them."""
    function = """

    def decorated$(function):
        def inner(*arguments):
            with torch.no_grad():
                return function(*arguments)
        return inner


    @decorated$
    def run$(x):
        return run$<(x).item()
    """
    return HEAD + _many(n, function)


@shape(250)
def operations(n: int) -> str:
    """A generated file of small functions, each of which calls an operation of torch."""
    function = """

    def op_$(x, y=None, alpha=$):
        if y is None:
            return torch.relu(x)
        return torch.add(x, y, alpha=alpha)
    """
    return HEAD + _many(n, function)


@shape(250)
def mutated_globals(n: int) -> str:
    """Many globals, each changed and read by functions, and one container that all of them fill."""
    function = """

    def change$(x):
        global state$, count
        state$ = torch.relu(x) + state$<
        count = count + 1
        STATE["k$"] = state$
        return state$.item(), STATE["k$<"]
    """
    states = _many(n, "state$ = torch.zeros(3)\n")
    return HEAD + MODEL + "STATE, count = {}, 0\n" + states + _many(n, function)


# --- classes -------------------------------------------------------------------------------------------


@shape(100)
def modules(n: int) -> str:
    """Many modules."""
    module = """

    class Block$(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv = nn.Conv2d(width, width, 3)
            self.norm = nn.BatchNorm2d(width)
            self.scale = torch.ones(width)

        def forward(self, x):
            h = self.norm(self.conv(x))
            return torch.relu(h * self.scale) + x
    """
    return HEAD + _many(n, module)


@shape(100)
def models_of_modules(n: int) -> str:
    """Modules that hold one another, each made of the one before."""
    module = """

    class Block$(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inner = Block$<(width)
            self.linear = nn.Linear(width, width)

        def forward(self, x):
            return self.inner(self.linear(x)).relu()
    """
    return HEAD + _many(n, module).replace("Block0(width)", "nn.ReLU()") + f"\n\nmodel = Block{n - 1}(3)\n"


@shape(250)
def attributes(n: int) -> str:
    """Many layers of one module."""
    layers, uses = _many(n, "self.l$ = nn.Linear(3, 3)\n", 8), _many(n, "x = torch.relu(self.l$(x))\n", 8)
    init = "\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    return HEAD + init + layers + "\n    def forward(self, x):\n" + uses + "        return x\n"


@shape(250)
def methods(n: int) -> str:
    """Many methods of one module, each of which calls the one before."""
    parts = _many(
        n, "\n    def part$(self, x):\n        y = self.part$<(x)\n        return self.l(y).relu()\n", 4
    )
    head = "\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    layer = "        self.l = nn.Linear(3, 3)\n"
    forward = f"\n    def forward(self, x):\n        return self.part{n - 1}(x)\n"
    return HEAD + head + layer + parts.replace("self.part0(x)", "x", 1) + forward


@shape(250)
def assignments_to_attribute(n: int) -> str:
    """One attribute that is assigned and read in many methods."""
    method = (
        "\n    def part$(self, x):\n        self.state = x + self.state\n        return self.state.item()\n"
    )
    return HEAD + "\n\nclass Meter:\n    def __init__(self):\n        self.state = 0\n" + _many(n, method, 4)


@shape(100)
def inheritance(n: int) -> str:
    """A long line of classes, each derived from the one before."""
    cls = "\n\nclass Base$(Base$<):\n    def forward(self, x):\n        return super().forward(x) + $\n"
    return HEAD + _many(n, cls).replace("(Base0)", "(nn.Module)", 1)


@shape(225)
def mesh_of_methods(n: int) -> str:
    """Methods of one class, each of which calls all of them: with ``2n`` calls in all."""
    count = round((2 * n) ** 0.5)
    calls = _many(count, "x = self.m$(x)\n", 4)
    methods = textwrap.indent(
        "".join(f"def m{i}(self, x):\n{calls}    return torch.relu(x) + x.item()\n\n" for i in range(count)),
        " " * 4,
    )
    head = "\n\nclass Mesh(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n"
    return HEAD + head + methods + "    def forward(self, x):\n        return self.m0(x)\n"


@shape(250)
def chain_of_methods_called(n: int) -> str:
    """Methods of one class that is no module, each of which calls the one before."""
    method = "\ndef m$(self, x):\n    y = self.m$<(x)\n    return torch.relu(y) + $\n"
    return (
        HEAD
        + "\n\nclass Chain:\n    def __init__(self):\n        self.scale = 0\n"
        + _many(n, method, 4).replace("y = self.m0(x)", "y = x", 1)
    )


@shape(100)
def classes_of_classes(n: int) -> str:
    """Classes, each of which has an instance of the one before."""
    cls = """

    class Part$:
        def __init__(self, width):
            self.inner = Part$<(width)
            self.weight = torch.ones(width, device=device)

        def run(self, x):
            return self.inner.run(x) * self.weight + self.inner.weight
    """
    return HEAD + _many(n, cls).replace("Part0(width)", "nn.Linear(width, 1)", 1)


@shape(250)
def deep_sequential(n: int) -> str:
    """One ``nn.Sequential`` of many layers, of several kinds."""
    layers = _many(n, "nn.Conv2d($, $, 3),\nnn.BatchNorm2d($),\nnn.ReLU(),\nnn.Dropout(0.$),\n", 12)
    head = "\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    made = f"        self.layers = nn.Sequential(\n{layers}        )\n"
    return HEAD + head + made + "\n    def forward(self, x):\n        return self.layers(x)\n"


@shape(250)
def filled_sequential(n: int) -> str:
    """One ``nn.Sequential`` made of a list to which many layers are appended."""
    layers = _many(n, "layers.append(nn.Conv2d($, $, 3))\nlayers.append(nn.ReLU())\n", 8)
    head = "\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    made = f"        layers = []\n{layers}        self.layers = nn.Sequential(*layers)\n"
    return HEAD + head + made + "\n    def forward(self, x):\n        return self.layers(x)\n"


# --- data ----------------------------------------------------------------------------------------------


@shape(32)
def blocks(n: int) -> str:
    """Datasets, loaders and training loops, one below the other."""
    block = """

    class Data$(Dataset):
        def __init__(self, paths):
            self.paths = paths
            self.mean = torch.zeros(3)

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            x = torch.load(self.paths[index])
            return x.to(device) - self.mean.to(device), index


    class Net$(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 1)

        def forward(self, x):
            return self.l(x)


    data$ = Data$(["a"])
    loader$ = DataLoader(data$, batch_size=8, shuffle=True)
    net$ = Net$().to(device)
    optimizer$ = torch.optim.Adam(net$.parameters())
    for epoch in range(10):
        for x, y in loader$:
            optimizer$.zero_grad()
            loss = F.mse_loss(net$(x.to(device)), y.to(device))
            loss.backward()
            optimizer$.step()
            print(loss.item())
    """
    return HEAD + _many(n, block)


@shape(100)
def datasets(n: int) -> str:
    """Many datasets that share their helpers."""
    helpers = "\n\ndef read(path):\n    return torch.load(path).to(device)\n"
    dataset = """

    class Data$(Dataset):
        def __getitem__(self, index):
            x = read(self.paths[index])
            return self.augment(x), torch.tensor(index)

        def augment(self, x):
            return x + torch.randn(3, device=device)
    """
    return HEAD + helpers + _many(n, dataset)


@shape(100)
def loaders(n: int) -> str:
    """Many loaders of one dataset, each with a loop over it."""
    loader = """
    loader$ = DataLoader(data, batch_size=$)
    for x in loader$:
        print(model(x.to(device)).sum().item())
    """
    return HEAD + MODEL + "data = [torch.zeros(3)]\n" + _many(n, loader)


@shape(5000)
def literal_list(n: int) -> str:
    """One list of many numbers, made a tensor in a loop."""
    return _training("        weights = torch.tensor(DATA)\n") + f"\nDATA = [{_numbers(n)}]\n"


@shape(2500)
def literal_dict(n: int) -> str:
    """One dictionary with many keys, looked up in a loop."""
    entries = ", ".join(f'"key{i}": {i}' for i in range(n))
    return _training('        print(TABLE["key1"], loss.item())\n') + f"\nTABLE = {{{entries}}}\n"


@shape(500)
def literal_of_tensors(n: int) -> str:
    """One list of many tensors, and one sequence of many layers."""
    tensors = ", ".join(f"torch.zeros({i})" for i in range(n))
    layers = ", ".join(f"nn.Linear({i}, {i + 1}), nn.ReLU()" for i in range(n))
    return HEAD + f"tensors = [{tensors}]\nnet = nn.Sequential({layers})\nnet(torch.stack(tensors))\n"


def _numbers(n: int) -> str:
    return ",\n".join(", ".join(str(i) for i in range(k, min(k + 20, n))) for k in range(0, n, 20))


# --- expressions ---------------------------------------------------------------------------------------


@shape(100)
def sum_of_terms(n: int) -> str:
    """One expression with many terms."""
    return _training(f"        total = {' + '.join(['loss'] * n)}\n        print(total.item())\n")


@shape(60)
def chain_of_methods(n: int) -> str:
    """One expression with many methods, each called on what the one before gave."""
    return _training(f"        total = loss{'.relu()' * n}\n        print(total.item())\n")


@shape(25)
def nested_calls(n: int) -> str:
    """Calls in calls."""
    return _training(f"        total = {'torch.relu(' * n}loss{')' * n}\n        print(total.item())\n")


@shape(500)
def conditions(n: int) -> str:
    """One condition with many parts, and many arguments of one call."""
    return _training(
        f"        if {' or '.join(f'loss > {i}' for i in range(n))}:\n            print(loss)\n"
    ) + (f"print({', '.join(f'model.weight[{i}].item()' for i in range(n))})\n")


@shape(250)
def elif_chain(n: int) -> str:
    """One long chain of ``elif``."""
    chain = _many(n, "elif name == '$':\n    return nn.Linear($, $)\n", 4).replace("    elif", "    if", 1)
    return HEAD + "\n\ndef make(name):\n" + chain + "    return None\n"


@shape(50)
def elif_in_loop(n: int) -> str:
    """One long chain of ``elif`` in a training loop, whose branches compute."""
    chain = _many(n, "elif kind == $:\n    total = loss * $\n    print(total.item())\n", 8)
    return _training("        kind = y.argmax()\n" + chain.replace("        elif", "        if", 1))


@shape(12)
def deep_nesting(n: int) -> str:
    """Statements in statements: loops, conditions and contexts."""
    headers = ("for x in loader:", "if x is not None:", "with torch.no_grad():", "while model(x).item():")
    lines = [f"{' ' * (depth + 1)}{headers[depth % 4]}" for depth in range(n)]
    deepest = " " * (n + 1)
    body = [f"{deepest}{line}" for line in ("loss = model(x).sum()", "loss.backward()", "print(loss.item())")]
    return HEAD + MODEL + "\n\ndef train(loader):\n" + "\n".join([*lines, *body]) + "\n"


@shape(100)
def sum_of_strings(n: int) -> str:
    """One string concatenated of many parts."""
    parts = " + ".join(f'"part{i}: " + str(loss.item())' for i in range(n))
    return _training(f"        print({parts})\n")


@shape(250)
def sum_of_numbers(n: int) -> str:
    """One sum of many different names at the top level."""
    names = _many(n, "a$ = $\n")
    return HEAD + MODEL + names + f"total = {' + '.join(f'a{i}' for i in range(n))}\nprint(model(total))\n"


@shape(100)
def chain_of_attributes(n: int) -> str:
    """One chain of many attributes, and its call in a loop."""
    return _training(f"        total = model{'.part' * n}(loss)\n        print(total.item())\n")


@shape(250)
def conditions_of_numbers(n: int) -> str:
    """One condition of many parts, all about plain names."""
    condition = " and ".join(f"len(x) > {i}" for i in range(n))
    return _training(f"        if {condition}:\n            print(loss)\n")


@shape(50)
def handed_everywhere(n: int) -> str:
    """One function that each of many hands on to two others, with another word."""
    steps = "".join(
        f"def step_{i}(f, name):\n"
        f"    near = step_{(i + 1) % n}(f, 'next {i}') if name else f(name)\n"
        f"    return near or step_{(7 * i + 3) % n}(f, 'far {i}')\n\n\n"
        for i in range(n)
    )
    return steps + _training("        step_0(lambda name: loss.item(), 'begin')\n")


@shape(50)
def elif_of_tensors(n: int) -> str:
    """One long chain of ``elif`` that asks tensors, and computes with what the branches leave."""
    branch = "elif loss > $:\n    out = out * $\n    weight = torch.full((3,), $, device=device)\n"
    chain = _many(n, branch, 8).replace("        elif", "        if", 1)
    return _training(chain + "        print(out.mean().item(), weight.sum().item())\n")


# --- names ---------------------------------------------------------------------------------------------


@shape(250)
def assignments_to_name(n: int) -> str:
    """One name that is assigned many times, each time from itself."""
    return _training(_many(n, "loss = torch.relu(loss) + $\n", 8))


@shape(250)
def assignments_at_top_level(n: int) -> str:
    """One global that is assigned many times and read in many functions."""
    function = "scale = scale * $\n\n\ndef read$(x):\n    return (model(x) * scale).item()\n\n\n"
    return HEAD + MODEL + "scale = torch.ones(1, device=device)\n" + _many(n, function)


@shape(250)
def augmented_name(n: int) -> str:
    """One running sum to which many things are added."""
    return _training("        total = 0\n" + _many(n, "total += loss * $\n", 8) + "        print(total)\n")


@shape(500)
def reads_of_name(n: int) -> str:
    """One global that is read many times."""
    return (
        HEAD + MODEL + "table = torch.zeros(8, device=device)\n" + _many(n, "print(table[$], table.sum())\n")
    )


@shape(250)
def filled_list(n: int) -> str:
    """One list to which many things are appended in a loop."""
    body = "        kept.append(loss)\n" + _many(n, "kept.append(loss * $)\nprint(kept[$])\n", 8)
    return _training(body).replace("    for x", "    kept = []\n    for x", 1)


@shape(250)
def entries(n: int) -> str:
    """One dictionary with many entries that are set and read in a loop."""
    body = _many(n, 'kept["k$"] = loss * $\nprint(kept["k$"].item())\n', 8)
    return _training("        kept = {}\n" + body)


@shape(250)
def imports(n: int) -> str:
    """Many imports under many names."""
    lines = (
        "import torch.nn.functional as F$\nfrom torch import relu as r$, nn as nn$\nx$ = F$.relu(r$(x$<))\n"
    )
    return HEAD + "x0 = torch.zeros(3)\n" + _many(n, lines)


@shape(250)
def aliases(n: int) -> str:
    """Names for names for names."""
    return HEAD + MODEL + "m0, a0 = model, torch\n" + _many(n, "m$ = m$<\na$ = a$<\nm$(a$.zeros(3)).item()\n")


@shape(250)
def attributes_of_name(n: int) -> str:
    """Many attributes that are set from outside of the class and read there."""
    body = "config.value$ = torch.zeros($, device=device)\nprint(model(config.value$).item())\n"
    cls = "\n\nclass Config:\n    pass\n\n\nconfig = Config()\n"
    return HEAD + MODEL + cls + _many(n, body)


# --- two ways to the same place ------------------------------------------------------------------------

# What each line makes of the one before: what follows both ways takes twice as long for each line.
DOUBLING = {
    "sums": "a$ = a$< + a$<",
    "choices": "a$ = a$< if y else a$<",
    "maxima": "a$ = max(a$<, a$<)",
    "tensor_maxima": "a$ = torch.maximum(a$<, a$<)",
    "texts": 'a$ = f"{a$<} {a$<}"',
    "tuples": "a$ = (a$<, a$<)",
    "dictionaries": 'a$ = {"a": a$<, "b": a$<}',
    "calls": "a$ = combine(a$<, a$<)",
    "conditions": "a$ = a$< and a$<",
    "comparisons": "a$ = a$< < a$<",
    "items": "a$ = a$<[a$<]",
    "branches": "if y:\n    a$ = a$<\nelse:\n    a$ = a$<",
    "lists": "a$ = [*a$<, *a$<]",
}


def doubled(n: int, line: str, start: str, end: str) -> str:
    """A training loop with a chain of ``n`` lines, of which each uses what the one before assigns twice."""
    lines = "".join(line.replace("$<", str(i - 1)).replace("$", str(i)) + "\n" for i in range(1, n + 1))
    body = f"a0 = {start}\n{lines}{end.replace('$', str(n))}\n"
    return _training(textwrap.indent(body, 8 * " ")) + "\n\ndef combine(a, b):\n    return a\n"


def _doubling(line: str) -> Callable[[int], str]:
    return lambda n: doubled(n, line, "loss.item()", "print(a$)")


SHAPES.update(
    {f"chain_of_{name}": Shape(f"chain_of_{name}", 700, _doubling(line)) for name, line in DOUBLING.items()}
)


def _called_twice(n: int, last: str, inner: str = "    f$<(x)\n    f$<(x)\n") -> str:
    """Functions that call one another twice each, down to one with the statement ``last``."""
    functions = f"\n\ndef f0(x):\n    {last}\n"
    for i in range(1, n + 1):
        functions += f"\n\ndef f{i}(x):\n" + inner.replace("$<", str(i - 1))
    return functions


@shape(100)
def settings_below_calls(n: int) -> str:
    """A setting of the environment below functions that call one another twice each."""
    setting = _called_twice(n, 'os.environ["CUDA_LAUNCH_BLOCKING"] = os.environ["OMP_NUM_THREADS"] = "1"')
    return "import os\n" + HEAD + MODEL + setting + f"\n\nf{n}(0)\n"


@shape(100)
def loaders_below_calls(n: int) -> str:
    """A loader that is made below functions that call one another twice each."""
    inner = "    a = f$<(x)\n    b = f$<(x)\n    return a if a else b\n"
    made = _called_twice(n, "return DataLoader(x, batch_size=2)", inner)
    loop = f"\n\nfor x in f{n}(torch.zeros(3)):\n    model(x.to(device)).sum().backward()\n"
    return HEAD + MODEL + made + loop


@shape(100)
def loaders_handed_down(n: int) -> str:
    """A loader that functions hand on twice each, down to a loop over its batches."""
    loop = "for y in x:\n        model(y.to(device)).sum().backward()\n        optimizer.step()"
    return HEAD + MODEL + _called_twice(n, loop) + f"\n\nf{n}(DataLoader(torch.zeros(3)))\n"


@shape(100)
def waits_below_calls(n: int) -> str:
    """A wait for the device below functions that call one another twice each."""
    return _training(f"        f{n}(loss)\n") + _called_twice(n, "print(x.item())")


@shape(100)
def tuples_of_tuples(n: int) -> str:
    """Attributes that hold one another twice each."""
    lines = "".join(f"        self.a{i} = (self.a{i - 1}, self.a{i - 1})\n" for i in range(1, n + 1))
    start = "class Nested(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    return (
        HEAD
        + f"\n\n{start}        self.a0 = torch.zeros(3)\n{lines}"
        + f"\n    def forward(self, x):\n        return self.a{n}, x.item()\n"
    )


@shape(100)
def items_added_up(n: int) -> str:
    """Many numbers of the device that are added to one sum in a loop."""
    body = _training(_many(n, "total += model(x).mean().item()\n", 8))
    return body.replace("    for x", "    total = 0\n    for x", 1)


@shape(2000)
def plain_assignments(n: int) -> str:
    """Nothing but assignments of one name to another."""
    return "import torch\n" + "x = y\n" * n


# --- programs ------------------------------------------------------------------------------------------


@shape(100)
def optimizers(n: int) -> str:
    """Many models and optimizers, trained in one loop."""
    made = _many(
        n, "model$ = nn.Linear(3, 1).to(device)\noptimizer$ = torch.optim.Adam(model$.parameters())\n"
    )
    step = "optimizer$.zero_grad()\nloss$ = model$(x).sum()\nloss$.backward()\noptimizer$.step()\n"
    return HEAD + made + "\n\ndef train(loader):\n    for x in loader:\n" + _many(n, step, 8)


@shape(250)
def without_grad(n: int) -> str:
    """Many ``with torch.no_grad()`` in one function."""
    return _training(_many(n, "with torch.no_grad():\n    print(model(x * $).sum().item())\n", 8))


@shape(250)
def grad_switches(n: int) -> str:
    """The grad mode and the mode of the model, switched many times."""
    body = "torch.set_grad_enabled(False)\nmodel.eval()\nprint(model(x))\ntorch.set_grad_enabled(True)\n"
    return _training(_many(n, body + "model.train()\n", 8))


@shape(100)
def compiled(n: int) -> str:
    """Many functions that are compiled."""
    function = (
        "\n\n@torch.compile\ndef f$(x):\n    if x.sum() > 0:\n        x = x + f$<(x).item()\n    return x\n"
    )
    return HEAD + _many(n, function)


@shape(250)
def suppressed(n: int) -> str:
    """Many findings that comments silence."""
    return _training(_many(n, "print(loss.item())  # noqa: TL202\n", 8))


@shape(2500)
def suppressed_codes(n: int) -> str:
    """One comment that names many codes."""
    codes = ", ".join(f"TL{100 + i % 900}" for i in range(n))
    return _training(f"        print(loss.item())  # noqa: {codes}\n")


@shape(250)
def autocast_switches(n: int) -> str:
    """Many ``with torch.autocast(...)`` in one loop, inside of one another by twos."""
    body = """
    with torch.autocast("cuda"):
        with torch.no_grad():
            print(model(x * $).sum().item())
    """
    return _training(_many(n, body, 8))


@shape(250)
def one_line(n: int) -> str:
    """Many statements on one line, with many findings."""
    return _training(f"        {'; '.join(['print(loss.item())'] * n)}\n")


@shape(1)
def bad_fixtures(n: int) -> str:
    """What the rules find: their bad fixtures, each in a function of its own, and all of it repeatedly."""
    return _many(n, "".join(f"def {name}_$():\n{textwrap.indent(text, '    ')}\n\n" for name, text in _bad()))


@shape(1)
def bad_fixtures_at_top_level(n: int) -> str:
    """The same one below the other, so that later ones define names of earlier ones anew."""
    return "\n".join(text for _ in range(n) for _, text in _bad())


@shape(1)
def programs(n: int) -> str:
    """The programs of the fixtures, each in a function of its own, and all of them repeatedly."""
    folder = ROOT / "fixtures" / "programs"
    texts = [(path.stem, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.py"))]
    return "".join(
        f"def {name}_{i}():\n{textwrap.indent(text, '    ')}\n\n" for i in range(n) for name, text in texts
    )


@cache
def _bad() -> list[tuple[str, str]]:
    """The bad fixtures of all rules that can stand in a function, by names of their own."""
    found = []
    for folder in sorted((ROOT / "fixtures").glob("TL[1-9]*")):
        path = folder / "bad.py"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text and "$" not in text and not _TOP_LEVEL_ONLY.search(text):
            found.append((folder.name, text))
    return found
