"""Which waits are worth less than others: those of values that the host needs or decides by anyway."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.diagnostics import Impact
from torchlint.options import LintSettings
from torchlint.rules.host_device.item_in_hot_loop.rule import item_in_hot_loop
from torchlint.semantics import model
from torchlint.syntax import SyntaxTree

LOOP = """
import torch


def require_finite(x):
    if not torch.isfinite(x).all():
        raise ValueError


def read(x):
    return x.item()


model = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader, patience, bar):
    total, losses, best, n = 0.0, [], 9.0, 0
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        {}
"""

GENERATION = """
import torch


class Decoder(torch.nn.Module):
    ...


def generate(model: Decoder, tokens):
    model.cuda()
    tokens = tokens.cuda()
    for _ in range(100):
        tokens = model(tokens).argmax(-1)
        {}
    return tokens
"""

BEST = "if (v := loss.item()) < best:\n            best = v"
WAITS = {
    "z = torch.zeros(loss.item())": Impact.LOW,
    "if loss.item() < 1e-5:\n            break": Impact.LOW,
    "losses.append(loss.item())\n        if x.cuda().sum().item() < 0:\n            break": Impact.LOW,
    "losses.append(loss.item())\n        bar.set_postfix(loss=losses[-1])": Impact.HIGH,
    "bar.set_postfix(loss=loss.item())": Impact.HIGH,
    f"{BEST}\n        else:\n            n += 1\n        if n > 9:\n            break": Impact.LOW,
    f"{BEST}\n        if patience > 9:\n            break": Impact.HIGH,
    "if patience and losses_save_path:\n            losses.append(loss.item())": Impact.LOW,
    "if not isinstance(loss, (list, tuple)):\n            loss = loss.tolist()": Impact.LOW,
    "if not bool(torch.isfinite(loss)):\n            raise ValueError": Impact.LOW,
    "losses.append(loss.item())": Impact.HIGH,
    "total += loss.item()": Impact.HIGH,
    "if isinstance(loss, torch.Tensor):\n            losses.append(loss.item())": Impact.HIGH,
    "print(loss.item())": Impact.HIGH,
}


@pytest.mark.parametrize("line", WAITS)
def test_stake(line: str) -> None:
    assert _stakes(LOOP.format(line))[0] is WAITS[line]


CHECK = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        if bool((x < 0).any()):
            raise ValueError
        return self.body(x)


model = Model().cuda()
"""


def test_a_check_of_a_forward_pass_that_raises_is_worth_little() -> None:
    assert _stakes(CHECK) == [Impact.LOW]


TOTAL = "\n        total += x.cuda().sum().item()"
GROUPS = {
    # A step waits until the last of them is gone.
    "losses.append(loss.item())": Impact.HIGH,
    "bar.set_postfix(loss=loss.item())": Impact.HIGH,
    "total += loss.item()\n        bar.set_postfix(loss=total)": Impact.HIGH,
    # Behind one that stays, the queue is empty, and the others cost little.
    "z = torch.zeros(loss.item())": Impact.LOW,
    "env.step(loss.tolist())": Impact.LOW,
    "z = torch.zeros(loss.item())\n        z = model(z)": Impact.HIGH,
    # Also in a function that is called.
    "require_finite(loss)": Impact.LOW,
    "if patience:\n            require_finite(loss)": Impact.HIGH,
    "require_finite(loss)\n        z = model(x)": Impact.HIGH,
}


@pytest.mark.parametrize("first", GROUPS)
def test_behind_a_wait_that_stays_another_counts_little(first: str) -> None:
    assert _stakes(LOOP.format(first + TOTAL))[-1] is GROUPS[first]


AROUND = {
    "value = read(loss)\n        require_finite(loss)": Impact.LOW,
    "value = read(loss)\n        if patience:\n            require_finite(loss)": Impact.HIGH,
    "value = read(loss)\n        model(x)\n        require_finite(loss)": Impact.HIGH,
    "value = read(loss)": Impact.HIGH,
}


@pytest.mark.parametrize("lines", AROUND)
def test_before_a_wait_of_the_caller_that_stays_another_counts_little(lines: str) -> None:
    assert _stakes(LOOP.format(lines))[0] is AROUND[lines]


def test_waits_for_tokens_count() -> None:
    """Those who write decoding loops do remove such waits, all but the one by which the loop ends."""
    assert _stakes(GENERATION.format("model.cache[tokens[0].item()] = tokens")) == [Impact.HIGH]
    assert _stakes(GENERATION.format("if tokens[0].item() == 0:\n            break")) == [Impact.LOW]
    named = "n = tokens[0].item()\n        if tokens.eos and n == tokens.eos:\n            break"
    assert _stakes(GENERATION.format(named)) == [Impact.LOW]


CLASSES = """
import torch


def ratios(guess, truth, classes):
    found = []
    for c in range(classes):
        {}
        found.append((guess == c).float().mean().item())
    return found


def evaluate(model, loader):
    model.cuda().eval()
    for x, y in loader:
        with torch.no_grad():
            out = model(x.cuda())
        print(ratios(out.argmax(1), y.cuda(), 10))
"""


def test_a_loop_on_the_way_that_waits_to_go_on_waits_for_others_as_well() -> None:
    skips = "if (truth == c).sum().item() == 0:\n            continue"
    assert _stakes(CLASSES.format(skips)) == [Impact.LOW, Impact.LOW]
    assert _stakes(CLASSES.format("found.clear()")) == [Impact.HIGH]


EPOCHS = """
import torch


def train(model, loader, held_out, optimizer):
    model.cuda()
    for epoch in range(10):
        total = 0.0
        for x in loader:
            loss = model(x.cuda()).mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if model(held_out.cuda()).mean().item() > total:
            break
"""


def test_what_ends_the_loop_around_is_waited_for_less_often() -> None:
    assert _stakes(EPOCHS)[0] is Impact.HIGH


NORM = """
import torch


class Scale:
    def __init__(self, momentum):
        self.momentum = momentum


class Norm(torch.nn.Module):
    def __init__(self, momentum={}):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
        if self.momentum is None:
            return x / self.seen.item()
        return x * self.momentum


norm = Norm().cuda()
"""


@pytest.mark.parametrize(("default", "impact"), [("0.1", Impact.LOW), ("None", Impact.HIGH)])
def test_what_runs_for_none_counts_little_where_a_number_is_given_by_default(
    default: str, impact: Impact
) -> None:
    assert _stakes(NORM.format(default)) == [impact]


SERVER = """
import torch


class Runner:
    def execute_model(self, scheduler_output):
        logits = self.model(scheduler_output.tokens).cuda()
        return self._finish(logits)

    def _finish(self, logits: torch.Tensor):
        longest = torch.zeros(logits.max().item())
        return longest, logits.tolist()

"""


def test_waits_of_what_a_step_of_a_server_calls_count() -> None:
    """Servers are rid of all of them, of those in a row and of those that the host needs a value of."""
    assert _stakes(SERVER) == [Impact.HIGH, Impact.HIGH]


def _stakes(program: str) -> list[Impact]:
    settings = LintSettings()
    module = model.build(SyntaxTree(program), settings)
    return [
        Impact.HIGH if finding.slight is None else Impact.LOW
        for call in module.tree.nodes(cst.Call)
        if module.source(call).endswith((".item()", ".tolist()")) or module.source(call).startswith("bool(")
        for finding in item_in_hot_loop.check(call, module)
    ]
