"""Which programs are seen whole, and which would notice that their models have other state.

A script trains a model by itself and does nothing else with it. It is varied: by lines that leave the state
of the model alone, and by lines that save, load, list, count, name or show it.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.rules.model.bias_before_batch_norm.modelstate import seen_whole, state_unobserved
from torchlint.semantics.module import Module

HEAD = """
import argparse
import copy
import json
import logging
import operator
import torch
import torchvision
import numpy as np
import matplotlib.pyplot as plt
from torch import nn
"""
MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x)).mean()

def train(net, optimizer, batches):
    for epoch in range(3):
        for x in batches:
            loss = net(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
RUN = """
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [torch.rand(2, 3, 8, 8) for _ in range(3)]
train(net, optimizer, batches)
"""


def unobserved(module: Module) -> bool:
    layer = next(c for c in module.tree.nodes(cst.Call) if module.source(c).startswith("nn.Conv2d"))
    unnoticed: bool = state_unobserved(module, layer)
    return unnoticed


def whole(module: Module) -> bool:
    layer = next(c for c in module.tree.nodes(cst.Call) if module.source(c).startswith("nn.Conv2d"))
    whole: bool = seen_whole(module, layer)
    return whole


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "net.eval()",
        "net.train().to('cpu')",
        "with torch.no_grad():\n    print(net(batches[0]).item())",
        "twin = copy.deepcopy(net)",
        "net = nn.DataParallel(net)",
        "nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
        "nn.utils.clip_grad_norm_(list(net.parameters()), 1.0)",
        "for p in net.parameters():\n    p.requires_grad = False",
        "for p in net.parameters():\n    p.requires_grad_(False)",
        "for p in net.parameters():\n    p.grad = None",
        "optimizer.param_groups[0]['lr'] = 0.1",
        "for group in optimizer.param_groups:\n    group['lr'] *= 0.1",
        "print('%.4f' % (optimizer.param_groups[0]['lr'] * 2))",
        "device = next(net.parameters()).device",
        "torch.optim.Adam([{'params': net.norm.parameters(), 'lr': 0.1}])",
        "torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()))",
        "torch.optim.Adam(list(net.parameters()) + list(Net().parameters()))",
        "params = list(net.parameters())\ntorch.optim.Adam(params)",
        "def init(m):\n    if isinstance(m, nn.Conv2d):\n        nn.init.ones_(m.weight)\nnet.apply(init)",
        "for m in net.modules():\n    if isinstance(m, nn.Conv2d):\n        nn.init.ones_(m.weight)",
        "losses = []\nlosses.append(net(batches[0]).item())\nplt.plot(losses)\nplt.show()",
        "with open('log.json', 'w') as file:\n    json.dump({'loss': 1.0}, file)",
        "step = torch.compile(net)",
        "print('done', 3)",
        "for epoch, x in enumerate(batches):\n    print(f'{epoch}: {net(x).item():.3f}')",
        "print('%d: %.3f' % (3, net(batches[0]).item()))",
        "print('loss ' + str(round(net(batches[0]).item(), 3)))",
        "class Twice(nn.Module):\n    def forward(self, x: str) -> str:\n        return isinstance(x, str)",
    ],
)
def test_the_state_is_left_alone(semantic_model: Callable[[str], Module], lines: str) -> None:
    assert unobserved(semantic_model(f"{HEAD}{MODEL}{RUN}{lines}\n"))


@pytest.mark.parametrize(
    "lines",
    [
        # saved and loaded
        "torch.save(net, 'net.pt')",
        "torch.save(net.state_dict(), 'net.pt')",
        "torch.save({'net': net, 'epoch': 3}, 'net.pt')",
        "store = torch.save\nstore(net, 'net.pt')",
        "from torch import save\nsave(net, 'net.pt')",
        "net.load_state_dict(copy.deepcopy(net).state_dict())",
        "best = copy.deepcopy(net.state_dict())",
        "state = net.state_dict",
        "get = nn.Module.state_dict\nget(net)",
        "state = torch.load('optimizer.pt')\noptimizer.load_state_dict(state)",
        "torch.save(optimizer.state_dict(), 'optimizer.pt')",
        "import pickle\npickle.dump(net, open('net.pkl', 'wb'))",
        "import joblib\njoblib.dump(net, 'net.pkl')",
        "import dill\ndill.dump(net, open('net.pkl', 'wb'))",
        "import shelve\nshelve.open('nets')['net'] = net",
        "import safetensors.torch\nsafetensors.torch.save_model(net, 'net.safetensors')",
        "torch.jit.script(net).save('net.pt')",
        "torch.jit.save(torch.jit.trace(net, batches[0]), 'net.pt')",
        "torch.onnx.export(net, batches[0], 'net.onnx')",
        "torch.export.export(net, (batches[0],))",
        "torch.hub.load('pytorch/vision', 'resnet18')",
        "net.push_to_hub('net')",
        "net.save_pretrained('net')",
        "args = argparse.ArgumentParser().parse_args()\nif args.resume:\n    net.load_state_dict({})",
        "import torch.distributed.checkpoint as dcp\ndcp.save({'net': net}, checkpoint_id='x')",
        "from accelerate import Accelerator\nAccelerator().save_state('x')",
        "from ignite.handlers import ModelCheckpoint\nModelCheckpoint('x')(None, {'net': net})",
        "from transformers import Trainer\nTrainer(net).train()",
        "import lightning\nlightning.Trainer().fit(net)",
        "import wandb\nwandb.watch(net)",
        # listed, counted, named
        "print(len(list(net.parameters())))",
        "print(sum(p.numel() for p in net.parameters()))",
        "for n, p in net.named_parameters():\n    p.requires_grad = 'norm' in n",
        "names = [n for n, _ in net.named_parameters()]",
        "for p in net.parameters():\n    print(p.shape)",
        "shapes = [p.shape for p in net.parameters()]",
        "first, *others = net.parameters()",
        "for p, q in zip(net.parameters(), Net().parameters()):\n    q.data.copy_(p.data)",
        "parameters = list(net.parameters())\nparameters[2].data.zero_()",
        "torch.autograd.grad(net(batches[0]), net.parameters())",
        "torch.autograd.grad(net(batches[0]), list(net.parameters()))",
        "nn.utils.parameters_to_vector(net.parameters())",
        "weights = np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])",
        "each = net.parameters\nprint(len(list(each())))",
        "net.get_parameter('conv.bias')",
        "print(net.conv._parameters.keys())",
        "print(vars(net))",
        "print(net.__dict__)",
        "print(dir(net.conv))",
        "held = net.__getstate__()",
        "getattr(net, 'state' + '_dict')()",
        "for name in ['parameters']:\n    print(len(list(getattr(net, name)())))",
        "getattr(net, 'parameters')()",
        "operator.methodcaller('state_dict')(net)",
        "exec('print(net.state_dict())')",
        "print(globals())",
        "import inspect\nprint(inspect.getmembers(net))",
        "import gc\nprint(len(gc.get_objects()))",
        "print(len(optimizer.param_groups[0]['params']))",
        "optimizer.param_groups[0]['params'][3].data.zero_()",
        "for group in optimizer.param_groups:\n    for p in group['params']:\n        p.data.zero_()",
        "for group in optimizer.param_groups:\n    print(list(group.values()))",
        "groups = optimizer.param_groups",
        "print(len(optimizer.state))",
        "from torchsummary import summary\nsummary(net, (3, 8, 8))",
        "from torchinfo import summary\nsummary(net)",
        "from torch.utils.tensorboard import SummaryWriter\nSummaryWriter().add_graph(net, batches[0])",
        "from torch.func import functional_call, stack_module_state\nstack_module_state([net])",
        "import torch.fx\ntorch.fx.symbolic_trace(net)",
        "from torch.ao.quantization import fuse_modules\nfuse_modules(net, ['conv', 'norm'])",
        "from torch.nn.utils import prune\nprune.random_unstructured(net.conv, 'bias', 0.5)",
        "trunk = nn.Sequential(*list(net.children())[:1])",
        "net.conv.register_forward_hook(print)",
        # shown
        "print(net)",
        "print('net', net)",
        "print(f'{net}')",
        "print('%s' % net)",
        "print(f'{net!s:>80}')",
        "breakpoint()",
        "json.dumps({'net': net}, default=str)",
        "text = net.__str__()",
        "torch.save.__call__(net, 'net.pt')",
        "keep = getattr(torch, 'save')\nkeep(net, 'net.pt')",
        "import functools\nfunctools.partial(torch.save, net)('net.pt')",
        "from torch import jit\njit.script(net)",
        "import sys\nsys.modules['torch'].save(net, 'net.pt')",
        "print(sum(map(torch.numel, net.parameters())))",
        "largest = sorted(net.parameters(), key=len)",
        "everything = [*net.parameters()]",
        "for i, p in enumerate(net.parameters()):\n    p.requires_grad = i > 2",
        "def step(self):\n    for group in self.param_groups:\n        update(group['params'])",
        "print('%s %s' % (1, net))",
        "print('{}'.format(net))",
        "text = str(net)",
        "text = repr(net.conv)",
        "logging.info(net)",
        "logging.info('%s', net)",
        "for m in net.modules():\n    print(m)",
        "for m in [net]:\n    print(m)",
        "print([net])",
        "print(optimizer)",
        "def show(thing):\n    print(thing)\nshow(net)",
        "args = argparse.ArgumentParser().parse_args()\nargs.net = net\nprint(args)",
        "held = {}\nheld['net'] = net\nprint(held)",
        "print({'net': net})",
        "print(*[net])",
        "print(1 if net is None else net)",
        "list(map(print, [net]))",
        "net.apply(print)",
        "show = print\nshow(net)",
        "raise ValueError(net)",
        "assert net is None, net",
        "class Held:\n    def __init__(self, net):\n        self.net = net\nprint(Held(net).net)",
        "import tqdm\ntqdm.tqdm([]).set_postfix(net=net)",
        "import csv\ncsv.writer(open('x')).writerow([net])",
        # handed to code that is not seen
        "from utils import finish\nfinish(net)",
        "from .utils import finish\nfinish(net)",
        "from helpers import *\nfinish(net)",
        "import importlib\nimportlib.import_module('finish').finish(net)",
        "__import__('finish').finish(net)",
        "finish(net)",
        "__all__ = ['Net']",
    ],
)
def test_the_state_is_observed(semantic_model: Callable[[str], Module], lines: str) -> None:
    assert not unobserved(semantic_model(f"{HEAD}{MODEL}{RUN}{lines}\n"))


def _below(test: str, lines: str) -> str:
    return test + "".join(f"    {line}\n" for line in lines.strip().splitlines())


GUARD = 'if __name__ == "__main__":\n'
INLINE = (
    "net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n" + dedent(RUN).partition("net = Net()\n")[2]
)
TRAIN = MODEL.partition("def train")[1] + MODEL.partition("def train")[2]


@pytest.mark.parametrize(
    ("program", "is_whole"),
    [
        pytest.param(MODEL + RUN, True, id="script"),
        pytest.param(MODEL + _below("def main():\n", RUN) + "main()\n", True, id="main is called"),
        pytest.param(
            TRAIN + _below(GUARD, INLINE.replace("net(x)", "net(x).mean()")), True, id="nothing to import"
        ),
        pytest.param(MODEL, False, id="module"),
        pytest.param(MODEL + _below(GUARD, RUN), False, id="the class can be imported"),
        pytest.param(MODEL + _below("def main():\n", RUN) + f"{GUARD}    main()\n", False, id="so can main"),
        pytest.param(MODEL + _below("def main():\n", RUN), False, id="main is not called"),
        pytest.param(
            "import os\n" + MODEL + _below("if os.environ.get('TRAIN'):\n", RUN), False, id="trains on demand"
        ),
        pytest.param(MODEL + "net = Net()\nprint(net(torch.rand(2, 3, 8, 8)))\n", False, id="never trained"),
        pytest.param("import pytest\n" + MODEL + RUN, False, id="test"),
    ],
)
def test_the_program_is_seen_whole(
    semantic_model: Callable[[str], Module], program: str, is_whole: bool
) -> None:
    assert whole(semantic_model(HEAD + program)) is is_whole
