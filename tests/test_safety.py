"""The known ways in which fixes of other tools broke programs, each tried on a program of our own.

Every program also has a line that is to be fixed, or a twin that differs only in what makes the fix wrong: a
linter that skipped the program would fail here just as one that breaks it.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from torchlint import reading, registry
from torchlint.checker import check
from torchlint.diagnostics import Applicability, Diagnostic, Edit, Fix, Position, Severity, Span
from torchlint.fixer import choose, fix
from torchlint.options import LintSettings
from torchlint.source import Source

PATH = Path("program.py")


def settings(*codes: str) -> LintSettings:
    """All rules, or those given, with unsafe fixes: what is wrong must not even be offered as one."""
    rules = codes or tuple(registry.rules())
    return LintSettings(rules=tuple(sorted(rules)), fixable=frozenset(rules), unsafe_fixes=True)


def fixed(program: bytes, *codes: str) -> bytes:
    """The program after all fixes, which a second run must leave as it is."""
    chosen = settings(*codes)
    source = reading.from_bytes(program, PATH)
    once = source.encode(fix(source, chosen).text)
    again = reading.from_bytes(once, PATH)
    assert again.encode(fix(again, chosen).text) == once
    compile(once, PATH.name, "exec")
    return once


@dataclass(frozen=True)
class Way:
    """A way to break a program: the program, and what its fixes may make of it.

    Attributes:
        name: as the design lists it.
        rules: the codes of the rules that are tried.
        before: the program.
        after: the program with what is right to fix, and nothing else.
    """

    name: str
    rules: tuple[str, ...]
    before: str
    after: str


def way(name: str, rules: str, before: str, *changes: tuple[str, str]) -> Way:
    """A way whose ``changes`` are the right ones: each text, which is there once, becomes another."""
    before = textwrap.dedent(before).lstrip()
    after = before
    for old, new in changes:
        assert after.count(old) == 1, (name, old)
        after = after.replace(old, new)
    return Way(name, tuple(rules.split()), before, after)


LOADERS = """
    import torch
    from torch.utils.data import DataLoader

    device = torch.device("cuda")


    def train(model, dataset, kw):
        for x in {loader}:
            model(x.to(device)).sum().backward()
        for x in DataLoader(dataset, 8):
            model(x.to(device)).sum().backward()
"""
PINNED = ("DataLoader(dataset, 8)", "DataLoader(dataset, 8, pin_memory=True)")

WAYS = (
    way(
        "a module registered before the constructor of nn.Module has run",
        "TL409",
        """
        from torch import nn


        class Early(nn.Module):
            def __init__(self):
                self.layers = [nn.Linear(2, 2) for _ in range(2)]
                super().__init__()
                self.others = [nn.Linear(2, 2) for _ in range(2)]

            def forward(self, x):
                return self.others[0](self.layers[0](x))
        """,
        (
            "self.others = [nn.Linear(2, 2) for _ in range(2)]",
            "self.others = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])",
        ),
    ),
    way(
        "a container that refuses its keys, or copies a list too early",
        "TL409",
        """
        from torch import nn


        class Keyed(nn.Module):
            def __init__(self):
                super().__init__()
                self.taken = {"forward": nn.Linear(2, 2), "b": nn.Linear(2, 2)}
                self.dotted = {"a.b": nn.Linear(2, 2)}
                self.numbers = {1: nn.Linear(2, 2)}
                self.free = {"a": nn.Linear(2, 2)}
                layers = []
                self.layers = layers
                layers.append(nn.Linear(2, 2))

            def forward(self, x):
                x = self.dotted["a.b"](self.taken["b"](x))
                for layer in self.layers:
                    x = layer(x)
                return self.free["a"](self.numbers[1](x))
        """,
        ('self.free = {"a": nn.Linear(2, 2)}', 'self.free = nn.ModuleDict({"a": nn.Linear(2, 2)})'),
    ),
    way(
        "a call in place of a forward that a call runs",
        "TL410",
        """
        import types

        from torch import nn


        class Cached(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.linear = nn.Linear(2, 2)

            def __call__(self, x):
                return self.linear.forward(x)


        def run(x):
            return Cached(None).forward(x), nn.Linear(2, 2).forward(x)
        """,
        ("nn.Linear(2, 2).forward(x)", "nn.Linear(2, 2)(x)"),
    ),
    way(
        "an added keyword already inside **kw",
        "TL102",
        LOADERS.format(loader="DataLoader(dataset, 4, **kw)"),
        PINNED,
    ),
    way(
        "an added keyword already inside **kw, of a factory",
        "TL201",
        """
        import torch

        device = torch.device("cuda")
        options = {"device": "cpu"}
        noise = torch.zeros(3, **options).to(device)
        mask = torch.zeros(3).to(device)
        """,
        ("torch.zeros(3).to(device)", "torch.zeros(3, device=device)"),
    ),
    way(
        "an added keyword already given positionally",
        "TL102",
        LOADERS.format(loader="DataLoader(dataset, 4, False, None, None, 0, None, False)"),
        # It is an answer, and stays.
        PINNED,
    ),
    way(
        "an added keyword already given positionally, of a layer",
        "TL401",
        """
        import torch.nn as nn

        one = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, 1, 1, True), nn.BatchNorm2d(8))
        other = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        """,
        ("1, 1, 1, 1, True)", "1, 1, 1, 1, False)"),
        ("nn.Conv2d(3, 8, 3)", "nn.Conv2d(3, 8, 3, bias=False)"),
    ),
    way(
        "an added keyword already given positionally, of a copy",
        "TL103",
        """
        import torch
        from torch.utils.data import DataLoader

        device = torch.device("cuda")


        def train(model, dataset):
            for x, y in DataLoader(dataset, 4, pin_memory=True):
                x, y = x.to(device, torch.float32, True), y.to(device)
                model(x, y).sum().backward()
        """,
        ("y.to(device)", "y.to(device, non_blocking=True)"),
    ),
    way(
        "the user's own class named DataLoader",
        "TL101 TL102 TL105",
        """
        import torch
        from torch.utils import data

        device = torch.device("cuda")


        class DataLoader:
            def __init__(self, dataset, batch_size, num_workers=0, prefetch_factor=2):
                self.dataset = dataset

            def __iter__(self):
                yield from self.dataset


        def train(model, dataset):
            for x in DataLoader(dataset, 4, num_workers=0, prefetch_factor=2):
                model(x.to(device)).sum().backward()
            for x in data.DataLoader(dataset, 8, num_workers=2):
                model(x.to(device)).sum().backward()
        """,
        (
            "data.DataLoader(dataset, 8, num_workers=2)",
            "data.DataLoader(dataset, 8, num_workers=2, pin_memory=True)",
        ),
    ),
    way(
        "@torch.no_grad() where torch goes by another name",
        "TL301",
        """
        import torch as th
        from torch.nn import Module


        def evaluate(model: Module, loader):
            model.eval()
            return [model(x).argmax(-1).tolist() for x in loader]
        """,
        ("def evaluate", "@th.no_grad()\ndef evaluate"),
    ),
    way(
        "@torch.no_grad() where torch is something else",
        "TL301",
        """
        from torch.nn import Module


        def light(torch):
            def evaluate(model: Module, loader):
                model.eval()
                torch.on()
                return sum(int(model(x).argmax()) for x in loader)

            return evaluate


        def evaluate(model: Module, loader):
            model.eval()
            return sum(int(model(x).argmax()) for x in loader)
        """,
        ("from torch.nn import Module", "import torch\nfrom torch.nn import Module"),
        ("\n\ndef evaluate", "\n\n@torch.no_grad()\ndef evaluate"),
    ),
    way(
        "@torch.no_grad() above @staticmethod",
        "TL301",
        """
        import torch


        class Trainer:
            @staticmethod
            def evaluate(model: torch.nn.Module, loader):
                model.eval()
                return [model(x).argmax(-1).tolist() for x in loader]
        """,
        ("    @staticmethod\n", "    @staticmethod\n    @torch.no_grad()\n"),
    ),
    way(
        "@torch.no_grad() on a function that uses torch.autograd.grad or enable_grad",
        "TL301",
        """
        import torch


        def evaluate_smoothness(model: torch.nn.Module, loader):
            model.eval()
            for x, y in loader:
                x.requires_grad_()
                (slope,) = torch.autograd.grad(model(x).sum(), x)
                print(slope.norm())


        def evaluate_adapted(model: torch.nn.Module, loader):
            model.eval()
            for x, y in loader:
                with torch.enable_grad():
                    print(model(x).argmax(-1))


        def evaluate(model: torch.nn.Module, loader):
            model.eval()
            for x, y in loader:
                print(model(x).argmax(-1))
        """,
        ("def evaluate(", "@torch.no_grad()\ndef evaluate("),
    ),
    way(
        "dividing a GAN critic's loss",
        "",
        """
        import torch
        from torch import nn

        device = torch.device("cuda")
        critics = 5


        def train(generator: nn.Module, critic: nn.Module, batches):
            generator_steps = torch.optim.Adam(generator.parameters())
            critic_steps = torch.optim.Adam(critic.parameters())
            for step, real in enumerate(batches):
                noise = torch.randn(len(real), 64).to(device)
                critic_loss = critic(generator(noise).detach()).mean() - critic(real).mean()
                critic_steps.zero_grad(set_to_none=True)
                critic_loss.backward()
                critic_steps.step()
                if (step + 1) % critics == 0:
                    generator_loss = -critic(generator(noise)).mean()
                    generator_steps.zero_grad(set_to_none=True)
                    generator_loss.backward()
                    generator_steps.step()
        """,
        ("torch.randn(len(real), 64).to(device)", "torch.randn(len(real), 64, device=device)"),
    ),
    way(
        "a replacement spelt with half of an alias",
        "TL201 TL301",
        """
        import torch as th
        import torch.nn.functional as F
        from torch import nn as N


        def evaluate(model: N.Module, loader, n):
            model.eval()
            for x in loader:
                noise = th.FloatTensor(n, 4).cuda()
                print(F.softmax(model(x.cuda()) + noise, -1).argmax(-1))
        """,
        ("def evaluate", "@th.no_grad()\ndef evaluate"),
        ("th.FloatTensor(n, 4).cuda()", 'th.empty(n, 4, dtype=th.float32, device="cuda")'),
    ),
    way(
        "a replacement spelt with half of an alias, the whole of which is not there",
        "TL301",
        """
        import torch.nn.functional as F
        from torch.nn import Module


        def evaluate(model: Module, loader):
            model.eval()
            for x in loader:
                print(F.softmax(model(x), -1).argmax(-1))
        """,
        ("import torch.nn.functional", "import torch\nimport torch.nn.functional"),
        ("def evaluate", "@torch.no_grad()\ndef evaluate"),
    ),
    way(
        "nested fixes losing the inner one",
        "TL201 TL301",
        """
        import torch


        def evaluate(model: torch.nn.Module, loader):
            for x in loader:
                model.train()
                model(x).sum().backward()
            model.eval()
            for x in loader:
                noise = torch.zeros(torch.ones(3).cuda().shape).cuda()
                print(model(x.cuda() + noise).argmax(-1))
        """,
        (
            "    for x in loader:\n        noise = ",
            "    with torch.no_grad():\n        for x in loader:\n            noise = ",
        ),
        (
            "torch.zeros(torch.ones(3).cuda().shape).cuda()",
            'torch.zeros(torch.ones(3, device="cuda").shape, device="cuda")',
        ),
        ("        print(model(x.cuda()", "            print(model(x.cuda()"),
    ),
    way(
        "a block shifted by one fix while another one puts a line into it",
        "TL301",
        """
        import torch


        def step(model, x, y):
            criterion(model(x), y).backward()


        def until_it_is_good(model: torch.nn.Module, train_loader, test_loader):
            while True:
                for x, y in train_loader:
                    step(model, x, y)
                if criterion(model(x), y) < 0.1:
                    print(sum(criterion(model(x), y) for x, y in test_loader))
        """,
        (
            """        if criterion(model(x), y) < 0.1:
            print(""",
            """        with torch.no_grad():
            if criterion(model(x), y) < 0.1:
                print(""",
        ),
    ),
    way(
        "a move hoisted that something writes to by another name",
        "TL208",
        """
        import torch
        import torch.nn.functional as F

        device = torch.device("cuda")


        def train(model, loader):
            mean, weights = torch.zeros(8), torch.ones(8)
            variance = torch.ones(8)
            scale = torch.ones(8)
            steps = torch.ones(8)
            plain = torch.ones(8)
            first = steps[:1]
            for x in loader:
                x = F.batch_norm(x.to(device), None, variance.to(device), training=True)
                row = torch.unsqueeze(scale.to(device), 0)
                row += x.mean()
                (model(x) * row * steps.to(device) + plain.to(device)).sum().backward()
                first += 1
        """,
        ("    for x in loader:", "    plain = plain.to(device)\n    for x in loader:"),
        ("+ plain.to(device)", "+ plain"),
    ),
    way(
        "a whole number of NumPy taken for data",
        "TL209",
        """
        import numpy as np
        import torch

        lengths = np.array([3, 5])
        longest = torch.LongTensor(np.max(lengths))
        all_of_them = torch.LongTensor(lengths)
        """,
        ("torch.LongTensor(lengths)", "torch.as_tensor(lengths, dtype=torch.int64)"),
    ),
    way(
        "the quotes of an f-string inside of it",
        "TL201",
        """
        import torch

        print(f"{torch.ones(3).cuda()} {f'{torch.zeros(3).cuda()}'}")
        """,
        ("torch.ones(3).cuda()", "torch.ones(3, device='cuda')"),
    ),
    way(
        "two objects made one, of which one is told to need a gradient",
        "TL310",
        """
        import torch
        from torch.autograd import Variable


        def attack(model):
            x = torch.rand(8)
            kept = Variable(x)
            x.requires_grad = True
            plain = Variable(torch.rand(8))
            model(kept * x + plain).backward()
            return x.grad
        """,
        ("kept = Variable(x)", "kept = x.detach()"),
        ("Variable(torch.rand(8))", "torch.rand(8)"),
    ),
    way(
        "a directive inside a string literal obeyed",
        "TL201 TL002",
        '''
        """Write `# torchlint: ignore[TL201]` behind a line to keep it.

        # torchlint: file-ignore[TL201]
        """
        import torch

        help_text = "# torchlint: ignore[TL201]"
        both = torch.zeros(3).cuda(), "# torchlint: ignore[TL201]  # noqa: TL201"
        kept = torch.ones(3).cuda()  # torchlint: ignore[TL201]
        ''',
        ("torch.zeros(3).cuda()", 'torch.zeros(3, device="cuda")'),
    ),
    way(
        "an import dropped that something else needs",
        "TL514",
        """
        import torch
        import torch._dynamo as dynamo

        dynamo.config.suppress_errors = True
        model = dynamo.optimize("inductor")(torch.nn.Linear(8, 8))
        """,
        (
            'dynamo.optimize("inductor")(torch.nn.Linear(8, 8))',
            'torch.compile(torch.nn.Linear(8, 8), backend="inductor")',
        ),
    ),
    way(
        "data that is copied while the host waits, where it was not waited for",
        "TL201",
        """
        import torch


        def send(rows, device: torch.device):
            queued = torch.tensor(rows).to(device, non_blocking=True)
            return queued, torch.zeros(3).to(device, non_blocking=True)
        """,
        ("torch.zeros(3).to(device, non_blocking=True)", "torch.zeros(3, device=device)"),
    ),
)


LISTED = (
    "an added keyword already inside **kw",
    "an added keyword already given positionally",
    "the user's own class named DataLoader",
    "@torch.no_grad() where torch",
    "@torch.no_grad() above @staticmethod",
    "@torch.no_grad() on a function that uses torch.autograd.grad or enable_grad",
    "dividing a GAN critic's loss",
    "a replacement spelt with half of an alias",
    "nested fixes losing the inner one",
    "CRLF turned to LF",
    "a BOM dropped",
    "a directive inside a string literal obeyed",
)
"""The known ways of the design, in its order."""

OLD, NEW = b"torch.zeros(3).cuda()", b'torch.zeros(3, device="cuda")'
BYTES = {
    "CRLF turned to LF": b"import torch\r\n\r\nx = torch.zeros(3).cuda()\r\nprint(x)  # caf\xc3\xa9\r\n",
    "CRLF turned to LF, in a text of both": b"import torch\nx = torch.zeros(3).cuda()\r\nprint(x)\r\n\n",
    "a BOM dropped": b"\xef\xbb\xbfimport torch\nx = torch.zeros(3).cuda()\n",
    "another encoding": b"# coding: latin-1\nimport torch\nx = torch.zeros(3).cuda()  # caf\xe9\n",
    "no end of line at the end": b"import torch\nx = torch.zeros(3).cuda()",
}


@pytest.mark.parametrize("known", WAYS, ids=lambda known: known.name)
def test_known_way(known: Way) -> None:
    assert fixed(known.before.encode(), *known.rules).decode() == known.after


@pytest.mark.parametrize("known", WAYS, ids=lambda known: known.name)
def test_something_is_to_be_fixed(known: Way) -> None:
    found = check(Source(PATH, known.before), settings(*known.rules))
    assert any(item.fix is not None for item in found)
    assert known.before != known.after


@pytest.mark.parametrize("program", BYTES.values(), ids=BYTES)
def test_bytes_outside_the_edit(program: bytes) -> None:
    assert OLD in program
    assert fixed(program, "TL201") == program.replace(OLD, NEW)


def test_every_known_way_is_tried() -> None:
    names = [*(known.name for known in WAYS), *BYTES]
    assert [start for start in LISTED if not any(name.startswith(start) for name in names)] == []


UTILITIES = """\
import torch
from torch.autograd import Variable


def noise(size):
    return Variable(torch.randn(size))


if __name__ == "__main__":
    print(noise(3))
"""


def test_names_that_another_file_imports_from_this_one(tmp_path: Path) -> None:
    """``from utilities import *`` brings the names that ``utilities`` itself imports."""
    (tmp_path / "train.py").write_text("from utilities import *\n\nprint(Variable(noise(2)).shape)\n")
    path = tmp_path / "utilities.py"
    after = fix(Source(path, UTILITIES), LintSettings(rules=("TL310",), fixable=frozenset({"TL310"}))).text
    assert after == UTILITIES.replace("Variable(torch.randn(size))", "torch.randn(size)")
    path.write_text(after)
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True)


def test_names_that_another_fix_needs() -> None:
    """A fix takes out the import of a name that another one in the file writes: one has to wait."""
    text = "from m import name\n\nname()\nother()\n"
    place = Position(1, 1)

    def diagnostic(code: str, *edits: tuple[int, int, str]) -> Diagnostic:
        made = Fix("Go", tuple(Edit(Span(start, end), new) for start, end, new in edits), Applicability.SAFE)
        return Diagnostic(code, "n", "m", Severity.WARNING, PATH, Span(0, 0), place, place, made)

    removes = diagnostic("XX101", (0, 20, ""), (20, 26, "x()"))
    writes = diagnostic("XX102", (27, 34, "name.other()"))
    assert choose([removes, writes], text) == [writes]
    assert choose([removes], text) == [removes]
