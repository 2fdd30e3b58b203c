"""What rules say of how much is at stake at a place: less than usual where a change would gain little."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.checker import check
from torchlint.diagnostics import Impact
from torchlint.options import LintSettings
from torchlint.source import Source
from torchlint.target import Target

# The code of the rule, what the case is about, a program with one finding, and whether little is at stake.
CASES: list[tuple[str, str, bool, str]] = []


def case(code: str, name: str, low: bool, text: str) -> None:
    CASES.append((code, name, low, dedent(text)))


case(
    "TL505",
    "a moving average, which belongs to every step whoever takes it",
    False,
    """\
    import torch

    @torch.no_grad()
    def update(average, model, decay):
        for mean, weight in zip(average.parameters(), model.parameters()):
            mean.mul_(decay).add_(weight, alpha=1 - decay)
    """,
)
case(
    "TL505",
    "weights that only a private function clamps all at once",
    True,
    """\
    import torch

    def train(critic, loader, optimizer):
        critic.cuda()
        for x in loader:
            critic(x.cuda()).mean().backward()
            optimizer.step()
            for p in critic.parameters():
                p.data.clamp_(-0.01, 0.01)
    """,
)
case(
    "TL505",
    "gradients that a public function clips all at once",
    False,
    """\
    import torch

    def train(critic, loader, optimizer):
        critic.cuda()
        for x in loader:
            critic(x.cuda()).mean().backward()
            for p in critic.parameters():
                p.grad.data.clamp_(-0.01, 0.01)
            optimizer.step()
    """,
)
case(
    "TL202",
    "a number that a function gives to the loop of an evaluation",
    True,
    """\
    import torch

    def score(model, x, y):
        return (model(x).argmax(1) == y).float().mean().item()

    @torch.no_grad()
    def evaluate(model, loader):
        model.eval().cuda()
        return [score(model, x.cuda(), y.cuda()) for x, y in loader]
    """,
)
case(
    "TL206",
    "tokens that experts of a model are given, in what an engine makes for a step",
    False,
    """\
    import torch
    from vllm.forward_context import ForwardContext

    def permute(hidden_states: torch.Tensor, experts: torch.Tensor, forward_context: ForwardContext):
        experts = experts.cuda()
        kept = experts[experts != -1]
        return hidden_states[torch.argsort(kept)]
    """,
)
case(
    "TL206",
    "values below zero that a function of a model replaces",
    False,
    """\
    import torch

    def clamp(hidden_states: torch.Tensor):
        hidden_states = hidden_states.cuda()
        hidden_states[hidden_states < 0] = hidden_states.mean()
        return hidden_states
    """,
)
case(
    "TL202",
    "a number that a forward pass prints in a text",
    True,
    """\
    import torch
    from torch import nn

    class Solver(nn.Module):
        def forward(self, x):
            x = x.cuda()
            error = (x - x.mean()).norm()
            print("error {:.2e}".format(error.item()), flush=True)
            return x / 2
    """,
)
case(
    "TL202",
    "a number that a function gives to the loop of a training",
    False,
    """\
    import torch
    import torch.nn.functional as F

    def score(out, y):
        return (out.argmax(1) == y).float().mean().item()

    def train(model, loader, optimizer):
        model.train().cuda()
        scores = []
        for x, y in loader:
            out, y = model(x.cuda()), y.cuda()
            optimizer.zero_grad()
            F.cross_entropy(out, y).backward()
            optimizer.step()
            scores.append(score(out, y))
        return scores
    """,
)
case(
    "TL202",
    "the entries of a dict that a function gives to the loop of an evaluation",
    True,
    """\
    import torch

    def losses_of(model, x):
        losses = model(x)
        return {name: loss.mean().item() for name, loss in losses.items()}

    @torch.no_grad()
    def evaluate(model, loader):
        model.eval().cuda()
        results = []
        for x, _ in loader:
            results.append(losses_of(model, x.cuda()))
        return results
    """,
)
case(
    "TL202",
    "elements that a function reads one by one for the loop of an evaluation",
    False,
    """\
    import torch

    def labels(model, x):
        found = []
        for row in model(x):
            found.append(row.argmax().item())
        return found

    @torch.no_grad()
    def evaluate(model, loader):
        model.eval().cuda()
        results = []
        for x, _ in loader:
            results.append(labels(model, x.cuda()))
        return results
    """,
)
case(
    "TL202",
    "a number that only a check asks for",
    True,
    """\
    import torch
    from torch import nn

    class Gather(nn.Module):
        def forward(self, x, index):
            x, index = x.cuda(), index.cuda()
            top = -1 if len(index) == 0 else index.max().item()
            if top >= len(x):
                raise IndexError(f"{top} is out of range")
            return x.index_select(0, index)
    """,
)
case(
    "TL202",
    "a number that a check asks for, and a shape as well",
    True,
    """\
    import torch
    from torch import nn

    class Gather(nn.Module):
        def forward(self, x, index):
            x, index = x.cuda(), index.cuda()
            top = index.max().item()
            if top >= len(x):
                raise IndexError(f"{top} is out of range")
            return x[:top]
    """,
)
case(
    "TL202",
    "numbers that a forward pass only records",
    True,
    """\
    import torch
    from torch import nn

    class Loss(nn.Module):
        def forward(self, x, y):
            x, y = x.cuda(), y.cuda()
            near, far = (x - y).abs().mean(), (x - y).pow(2).mean()
            return near + far, {"near": near.item()}
    """,
)
case(
    "TL203",
    "a copy that a forward pass hands to another library",
    True,
    """\
    import torch
    from torch import nn
    from wire import send

    class Remote(nn.Module):
        def forward(self, x):
            hidden = torch.relu(x.cuda())
            return send(hidden.detach().cpu())
    """,
)
case(
    "TL203",
    "features that are collected without a graph, and trained on later",
    True,
    """\
    import torch

    class Probe(torch.nn.Module):
        @torch.no_grad()
        def collect(self, loader, dtype=torch.float16):
            self.backbone.eval()
            kept = []
            for images, _ in loader:
                features = self.backbone(images.cuda()).to(dtype=dtype, device="cpu")
                kept.append(features)
            return torch.cat(kept)

        def fit(self, loader, optimizer):
            for x in self.collect(loader).split(32):
                self.head(x.cuda(non_blocking=True)).sum().backward()
                optimizer.step()
    """,
)
case(
    "TL203",
    "a loss that is copied to the host on its way to the backward pass",
    False,
    """\
    import torch
    import torch.nn.functional as F

    def loss_of(out, y):
        return F.cross_entropy(out, y).to("cpu")

    def train(model, loader, optimizer):
        model.train().cuda()
        for x, y in loader:
            loss = loss_of(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)
case(
    "TL205",
    "a number that the host needs as a size",
    True,
    """\
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Crop(nn.Module):
        def forward(self, image, box):
            image, box = image.cuda(), box.cuda()
            left = box[0].round().long()
            before = max(-left, 0)
            return F.pad(image, pad=(before, 0, 0, 0))
    """,
)
case(
    "TL205",
    "a message about a large loss, which is as good every hundred steps",
    False,
    """\
    import torch

    def train(model, loader, optimizer, criterion):
        model.cuda()
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if loss > 100:
                print("large loss")
    """,
)
case(
    "TL205",
    "a loss that is divided by a count, unless that is zero",
    False,
    """\
    import torch
    from torch import nn

    class Focal(nn.Module):
        def forward(self, output, target):
            positive = target.cuda().eq(1).float()
            count = positive.sum()
            lost = (torch.log(output.cuda()) * positive).sum()
            return -lost / count if count > 0 else -lost
    """,
)
case(
    "TL205",
    "a vector that is divided by its norm, unless that is zero",
    True,
    """\
    import torch
    from torch import nn

    class Unit(nn.Module):
        def forward(self, x):
            x = x.cuda()
            norm = torch.linalg.vector_norm(x)
            return x / norm if norm > 0 else x
    """,
)
case(
    "TL205",
    "a number that the host needs as how many classes there are",
    True,
    """\
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Route(nn.Module):
        def forward(self, x: torch.Tensor, experts: torch.Tensor, most: int):
            x, experts = x.cuda(), experts.cuda()
            return x, F.one_hot(experts, max(experts.max() + 1, most))
    """,
)
case(
    "TL205",
    "a number that may as well be a tensor",
    False,
    """\
    import torch
    from torch import nn

    class Shift(nn.Module):
        def forward(self, image, box):
            image, box = image.cuda(), box.cuda()
            left = box[0].round().long()
            return image + max(-left, 0)
    """,
)
case(
    "TL205",
    "the sizes of a tensor, one of which is chosen for each dimension",
    True,
    """\
    import torch
    from torch import nn

    class Reshape(nn.Module):
        def forward(self, x: torch.Tensor, shape: torch.Tensor):
            shape = [x.shape[i] if size == 0 else size for i, size in enumerate(shape)]
            return torch.reshape(x.cuda(), torch.Size(shape))
    """,
)
case(
    "TL205",
    "a step that is left out where the loss is not finite",
    True,
    """\
    import torch

    def train(model, loader, optimizer):
        model.cuda()
        for x, y in loader:
            loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
            if torch.isnan(loss):
                print("skipped")
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)
case(
    "TL205",
    "a helper of training, which no server runs, though it is given logits",
    True,
    """\
    import torch

    def penalty(logits: torch.Tensor, limit):
        high = logits[logits > limit].detach() if limit else logits
        if high.max() < limit:
            return logits.mean()
        print("high")
        return high.mean()

    def train(model, loader, optimizer):
        model.cuda()
        for x in loader:
            loss = penalty(model(x.cuda()), 0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)
case(
    "TL205",
    "what a decoding loop does next by a value of its own",
    True,
    """\
    import torch

    @torch.no_grad()
    def generate(model, tokens: torch.Tensor, device):
        model, tokens, depth = model.to(device).eval(), tokens.to(device), 0
        for _ in range(100):
            chosen = model(tokens)[:, -1].argmax(-1, keepdim=True)
            if chosen[0] > 8:
                model.reset()
            tokens = torch.cat([tokens, chosen], 1)
        return tokens
    """,
)
case(
    "TL205",
    "a choice between values in a decoding loop",
    False,
    """\
    import torch

    @torch.no_grad()
    def generate(model, tokens: torch.Tensor, device):
        model, tokens = model.to(device).eval(), tokens.to(device)
        for _ in range(100):
            chosen = model(tokens)[:, -1].argmax(-1, keepdim=True)
            if chosen[0] > 8:
                chosen = chosen - 8
            tokens = torch.cat([tokens, chosen], 1)
        return tokens
    """,
)
case(
    "TL206",
    "sequences that are done, which a decoding loop leaves out",
    True,
    """\
    import torch

    @torch.no_grad()
    def generate(model, tokens: torch.Tensor, end, device):
        model, tokens = model.to(device).eval(), tokens.to(device)
        for _ in range(100):
            chosen = model(tokens)[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, chosen], 1)
            tokens = tokens[chosen.squeeze(1) != end]
        return tokens
    """,
)
case(
    "TL206",
    "tokens that experts of a model are given, in a program that trains",
    True,
    """\
    import torch
    from torch import nn

    def permute(hidden_states: torch.Tensor, experts: torch.Tensor):
        kept = experts[experts != -1]
        return hidden_states[torch.argsort(kept)]

    def train(model, loader, optimizer):
        model.cuda()
        for x, experts in loader:
            loss = model(permute(x.cuda(), experts.cuda())).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)
case(
    "TL206",
    "tokens that experts of a model are given, in a function that nothing is seen to call",
    True,
    """\
    import torch

    def permute(hidden_states: torch.Tensor, experts: torch.Tensor):
        experts = experts.cuda()
        kept = experts[experts != -1]
        return hidden_states[torch.argsort(kept)]
    """,
)
case(
    "TL205",
    "a decoding loop that goes on while some sequence has not ended",
    True,
    """\
    import torch

    @torch.no_grad()
    def generate(model, tokens: torch.Tensor, end, device):
        model, tokens = model.to(device).eval(), tokens.to(device)
        for _ in range(100):
            chosen = model(tokens)[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, chosen], 1)
            done = (tokens == end).any(-1).all()
            if not done:
                continue
            tokens = tokens[:, :-1]
            break
        return tokens
    """,
)
case(
    "TL203",
    "all scores of an evaluation, of which only the places of the largest are kept",
    False,
    """\
    import numpy as np
    import torch

    @torch.no_grad()
    def evaluate(model, loader, metric):
        for image, target in loader:
            scores = model(image.cuda()).cpu().numpy()
            metric.add_batch(target.numpy(), np.argmax(scores, axis=1))
    """,
)
case(
    "TL203",
    "labels that a step copies back, beside the loss by which it goes on",
    False,
    """\
    import math
    import torch

    def train(model, loader, step, report):
        model.cuda().train()
        for image, target in loader:
            labels = target.cuda()
            loss = torch.nn.functional.cross_entropy(model(image.cuda()), labels)
            if not math.isfinite(loss):
                break
            report(labels.cpu())
            step(loss)
    """,
)
case(
    "TL203",
    "all scores of an evaluation, which are kept as well",
    True,
    """\
    import numpy as np
    import torch

    @torch.no_grad()
    def evaluate(model, loader):
        kept, found = [], []
        for image, _ in loader:
            scores = model(image.cuda()).cpu().numpy()
            kept.append(scores)
            found.append(np.argmax(scores, axis=1))
        return kept, found
    """,
)
case(
    "TL203",
    "the features of a whole data set, collected by what is called training",
    True,
    """\
    import torch

    class Features:
        def __init__(self, model, device):
            self.model = model.to(device).eval()
            self.device = device

        def train(self, loader):
            outputs = {"first": [], "second": []}
            for x in loader:
                with torch.no_grad():
                    first, second = self.model(x.to(self.device))
                for name, each in zip(outputs, [first.cpu(), second]):
                    outputs[name].append(each)
            self.outputs = {name: torch.cat(each) for name, each in outputs.items()}
    """,
)
case(
    "TL203",
    "what a forward pass keeps in a bank of the object",
    True,
    """\
    import torch
    from torch import nn

    class Ranks(nn.Module):
        def __init__(self):
            super().__init__()
            self.bank = []

        def forward(self, x):
            basis = torch.linalg.qr(x.cuda()).Q
            self.bank.append(basis.detach().cpu())
            return basis @ (basis.T @ x)
    """,
)
case(
    "TL202",
    "a token by which a flag ends the loop around",
    True,
    """\
    import torch

    def decode(model, joint, frames, blank):
        model, tokens = model.cuda(), []
        for frame in frames:
            going, count = True, 0
            while going and count < 10:
                label = int(torch.argmax(joint(model(frame.cuda()))).item())
                if label == blank:
                    going = False
                else:
                    tokens.append(label)
                count += 1
        return tokens
    """,
)
case(
    "TL903",
    "an annotation",
    True,
    """\
    import torch

    def warm_up(scheduler: torch.optim.lr_scheduler._LRScheduler, steps: int):
        for _ in range(steps):
            scheduler.step()
    """,
)
case(
    "TL903",
    "a base class, of which torch's own schedulers are no heirs",
    False,
    """\
    from torch.optim.lr_scheduler import _LRScheduler

    class Warmup(_LRScheduler):
        def get_lr(self):
            return [rate * min(self.last_epoch / 100, 1) for rate in self.base_lrs]
    """,
)
case(
    "TL302",
    "gradients that are zeroed by whoever calls",
    False,
    """\
    def clear(model):
        for parameter in model.parameters():
            parameter.grad.zero_()
    """,
)
case(
    "TL408",
    "a model whose probabilities others may read",
    False,
    """\
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Pitch(nn.Module):
        def __init__(self):
            super().__init__()
            self.output = nn.Linear(8, 360)

        def forward(self, x):
            return torch.sigmoid(self.output(x))

        def loss(self, x, target):
            return F.binary_cross_entropy(self.forward(x), target)

        @torch.no_grad()
        def infer(self, x):
            return self.forward(x).argmax(-1), self.forward(x).amax(-1)
    """,
)
case(
    "TL408",
    "a sigmoid beside its loss, though others are given the result as well",
    False,
    """\
    import torch
    import torch.nn.functional as F

    def loss(logits, target, seen):
        p = torch.sigmoid(logits)
        seen.append(p)
        return F.binary_cross_entropy(p, target)
    """,
)
case(
    "TL413",
    "indices, in a function that nothing is seen to call",
    True,
    """\
    import torch

    def decay(w, T):
        index = torch.arange(T - 1, -1, -1, device=w.device).unsqueeze(0).repeat(w.shape[0], 1)
        return w.pow(index)
    """,
)
case(
    "TL413",
    "what a forward pass computes",
    False,
    """\
    import torch
    from torch import nn

    class Mixing(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.weight = nn.Parameter(torch.rand(channels, 9))

        def forward(self, x):
            summed = x.sum(dim=2).unsqueeze(1).repeat(1, 64, 1)
            return (summed * self.weight[:, 0]).sum(2)
    """,
)
case(
    "TL402",
    "relative positions, for which the queries are multiplied as well",
    True,
    """\
    import torch
    from einops import rearrange
    from torch import einsum, nn

    class Attention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads, self.scale = heads, (dim // heads) ** -0.5
            self.to_q, self.to_k, self.to_v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
            self.content_bias = nn.Parameter(torch.zeros(1, heads, 1, dim // heads))
            self.position_bias = nn.Parameter(torch.zeros(1, heads, 1, dim // heads))

        def shifted(self, scores):
            return scores.flatten(-2)[..., 1:].unflatten(-1, (-1, 64))

        def forward(self, x, rel_k):
            q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
            q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in (q, k, v))
            q = q * self.scale
            content = einsum("b h i d, b h j d -> b h i j", q + self.content_bias, k)
            positions = self.shifted(einsum("b h i d, h j d -> b h i j", q + self.position_bias, rel_k))
            attn = (content + positions).softmax(dim=-1)
            return einsum("b h i j, b h j d -> b h i d", attn, v)
    """,
)
case(
    "TL402",
    "a mask that is made of the input",
    False,
    """\
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.to_q, self.to_k, self.to_v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
            self.to_mask = nn.Linear(dim, 1)

        def forward(self, x):
            q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
            mask = torch.zeros_like(x[:, :1]).sum(-1, keepdim=True)
            scores = q @ k.transpose(-2, -1) / 8.0
            return (scores + mask).softmax(-1) @ v
    """,
)
case(
    "TL902",
    "a format that other programs load",
    True,
    """\
    import torch

    def export(model, path):
        torch.jit.script(model).save(path)
    """,
)
case(
    "TL902",
    "a library takes its place",
    True,
    """\
    import torch
    from torch import nn

    def smaller(model):
        return torch.quantization.quantize_dynamic(model, {nn.Linear})
    """,
)
case(
    "TL902",
    "other names in the state dict",
    True,
    """\
    from torch import nn
    from torch.nn.utils import weight_norm

    def layer(width):
        return weight_norm(nn.Conv2d(width, width, 3))
    """,
)
case(
    "TL902",
    "a parameter that does something else",
    True,
    """\
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model):
        return DistributedDataParallel(model, broadcast_buffers=False)
    """,
)
case(
    "TL902",
    "a name that has another",
    False,
    """\
    import torch.nn.functional as F

    def larger(x):
        return F.upsample(x, scale_factor=2)
    """,
)
case(
    "TL902",
    "a parameter that does nothing",
    False,
    """\
    import torch.nn.functional as F

    def loss(x, y):
        return F.mse_loss(x, y, size_average=False)
    """,
)

case(
    "TL507",
    "a function that is kept for its callers",
    True,
    """\
    import contextlib

    import torch

    # Deprecated: kept for compatibility
    @contextlib.contextmanager
    def autocast(enabled):
        yield torch.cuda.amp.autocast(enabled)
    """,
)
case(
    "TL507",
    "a function that warns of itself",
    True,
    """\
    import torch
    import warnings

    def autocast(enabled):
        warnings.warn("use torch.autocast", DeprecationWarning)
        return torch.cuda.amp.autocast(enabled)
    """,
)
case(
    "TL507",
    "a name that has another",
    False,
    """\
    import torch

    def autocast(enabled):
        return torch.cuda.amp.autocast(enabled)
    """,
)
case(
    "TL507",
    "apex is optional",
    True,
    """\
    try:
        from apex import amp
    except ImportError:
        amp = None

    def prepare(model, optimizer):
        return amp.initialize(model, optimizer)
    """,
)
case(
    "TL507",
    "apex is required",
    False,
    """\
    from apex import amp

    def prepare(model, optimizer):
        return amp.initialize(model, optimizer)
    """,
)
case(
    "TL903",
    "a class that is kept for its callers",
    True,
    """\
    from torch.optim.lr_scheduler import _LRScheduler

    class Warmup(_LRScheduler):
        \"\"\"Deprecated: use LinearLR.\"\"\"
    """,
)

case(
    "TL402",
    "a bias from a table of the window",
    True,
    """\
    import torch
    from torch import nn

    class Window(nn.Module):
        def forward(self, q, k, v):
            scores = (q * self.scale) @ k.transpose(-2, -1)
            bias = self.table[self.index.view(-1)].view(self.area, self.area, -1)
            bias = bias.permute(2, 0, 1).contiguous()
            scores = scores + bias.unsqueeze(0)
            return scores.softmax(-1) @ v
    """,
)
case(
    "TL402",
    "channels attend to channels, with einops",
    True,
    """\
    import torch
    import torch.nn.functional as F
    from einops import rearrange
    from torch import nn

    class Channels(nn.Module):
        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, dim=1)
            q = rearrange(q, "b (head c) h w -> b head c (h w)", head=self.heads)
            k = rearrange(k, "b (head c) h w -> b head c (h w)", head=self.heads)
            v = rearrange(v, "b (head c) h w -> b head c (h w)", head=self.heads)
            q = F.normalize(q, dim=-1)
            k = F.normalize(k, dim=-1)
            scores = (q @ k.transpose(-2, -1)) * self.temperature
            scores = scores.softmax(dim=-1)
            return scores @ v
    """,
)
case(
    "TL402",
    "channels attend to channels, with reshape",
    True,
    """\
    import torch
    from torch import nn

    class Channels(nn.Module):
        def forward(self, q, k, v):
            b, c, h, w = q.shape
            q = q.reshape(b, self.heads, c // self.heads, h * w)
            k = k.reshape(b, self.heads, c // self.heads, h * w)
            v = v.reshape(b, self.heads, c // self.heads, h * w)
            return (q @ k.transpose(-2, -1)).softmax(-1) @ v
    """,
)
case(
    "TL402",
    "channels attend to channels, with permute",
    True,
    """\
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Channels(nn.Module):
        def forward(self, x):
            b, n, c = x.shape
            qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 4, 1)
            q, k, v = qkv.unbind(0)
            q = F.normalize(q, dim=-1)
            k = F.normalize(k, dim=-1)
            scores = (q @ k.transpose(-2, -1)) * self.temperature
            return self.drop(scores.softmax(dim=-1)) @ v
    """,
)
case(
    "TL402",
    "channels attend to channels, with transpose",
    True,
    """\
    import torch
    from torch import nn

    class Channels(nn.Module):
        def forward(self, x):
            b, n, c = x.shape
            qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            q, k, v = qkv[0].transpose(-2, -1), qkv[1].transpose(-2, -1), qkv[2].transpose(-2, -1)
            return (q @ k.transpose(-2, -1)).softmax(dim=-1) @ v
    """,
)
case(
    "TL402",
    "positions attend to positions, with permute",
    False,
    """\
    import torch
    from torch import nn

    class Positions(nn.Module):
        def forward(self, x):
            b, n, c = x.shape
            qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.unbind(0)
            return (q @ k.transpose(-2, -1)).softmax(dim=-1) @ v
    """,
)
case(
    "TL402",
    "positions attend to positions, with einops",
    False,
    """\
    import torch
    from einops import rearrange
    from torch import nn

    class Positions(nn.Module):
        def forward(self, q, k, v):
            q = rearrange(q, "b (head c) h w -> b head (h w) c", head=self.heads)
            k = rearrange(k, "b (head c) h w -> b head (h w) c", head=self.heads)
            v = rearrange(v, "b (head c) h w -> b head (h w) c", head=self.heads)
            return (q @ k.transpose(-2, -1)).softmax(-1) @ v
    """,
)
case(
    "TL402",
    "a mask that the caller gives",
    False,
    """\
    import torch
    from torch import nn

    class Attention(nn.Module):
        def forward(self, q, k, v, mask):
            b, n, c = q.shape
            q = q.reshape(b, n, self.heads, c // self.heads).transpose(1, 2)
            scores = q @ k.transpose(-2, -1) * self.scale + mask
            return scores.softmax(-1) @ v
    """,
)
case(
    "TL513",
    "a function that works with a library of the host",
    True,
    """\
    import torch
    from Bio.PDB.StructureBuilder import StructureBuilder

    def structure(x):
        builder = StructureBuilder()
        builder.init_structure(str(x[0].item()))
        return builder.get_structure()

    @torch.compile
    def predict(x):
        return structure(x.relu().cuda())
    """,
)
case(
    "TL513",
    "a function that works with tensors",
    False,
    """\
    import torch

    def scaled(x):
        return x * x[0].item()

    @torch.compile
    def predict(x):
        return scaled(x.relu().cuda())
    """,
)
case(
    "TL206",
    "values that another mask has selected",
    True,
    """\
    import torch
    from torch import nn

    class Padding(nn.Module):
        def forward(self, x, mask):
            x, mask = x.cuda(), mask.cuda()
            kept = x[mask]
            places = torch.arange(x.shape[1], device=x.device) < mask.sum(1)[:, None]
            padded = torch.zeros_like(x)
            padded[places] = kept
            return padded
    """,
)
case(
    "TL206",
    "values for all places",
    False,
    """\
    import torch
    from torch import nn

    class Padding(nn.Module):
        def forward(self, x, y):
            x, y = x.cuda(), y.cuda()
            other = y[:, :8]
            x[x > 8] = other.mean()
            return x
    """,
)
case(
    "TL206",
    "distinct values that are kept",
    True,
    """\
    import torch
    from torch import nn

    class Embedding(nn.Module):
        def forward(self, targets):
            classes = torch.unique(targets.cuda())
            return torch.searchsorted(classes, targets), classes
    """,
)
case(
    "TL206",
    "distinct values that are counted",
    False,
    """\
    import torch
    from torch import nn

    class Head(nn.Module):
        def forward(self, targets):
            return self.score(targets, len(torch.unique(targets.cuda())))
    """,
)
case(
    "TL206",
    "as many frames as the model predicts",
    True,
    """\
    import torch
    from torch import nn

    class Speech(nn.Module):
        def forward(self, tokens):
            duration = torch.sigmoid(self.durations(tokens.cuda())).sum(-1)
            frames = torch.round(duration).clamp(min=1).long().squeeze()
            return torch.repeat_interleave(tokens.cuda(), frames)
    """,
)
case(
    "TL206",
    "as many copies as it is told",
    False,
    """\
    import torch
    from torch import nn

    class Speech(nn.Module):
        def forward(self, tokens, counts):
            return torch.repeat_interleave(tokens.cuda(), counts.cuda())
    """,
)
case(
    "TL401",
    "a convolution of a model that others train",
    True,
    """\
    from torch import nn

    block = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
    """,
)
case(
    "TL401",
    "a convolution of a model that is trained",
    False,
    """\
    from torch import nn

    block = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())

    def step(x, optimizer):
        block(x).mean().backward()
        optimizer.step()
    """,
)
case(
    "TL401",
    "a linear layer",
    True,
    """\
    from torch import nn

    block = nn.Sequential(nn.Linear(3, 64), nn.BatchNorm1d(64), nn.ReLU())
    """,
)
case(
    "TL401",
    "weights that others have trained",
    True,
    """\
    import torch
    from torch import nn

    def block(pretrained=False):
        layers = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
        if pretrained:
            layers.load_state_dict(torch.load("block.pt"))
        return layers
    """,
)
case(
    "TL401",
    "a model beside one of a library that others have trained",
    False,
    """\
    from torch import nn
    from torchvision import models

    features = models.vgg16(pretrained=True).features.eval()
    block = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())

    def step(x, optimizer):
        (features(block(x)) - features(x)).mean().backward()
        optimizer.step()
    """,
)
case(
    "TL401",
    "a model that loads itself",
    True,
    """\
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, path):
            super().__init__()
            self.block = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
            self.load_state_dict(torch.load(path))
    """,
)
case(
    "TL401",
    "a model that a configuration fills",
    True,
    """\
    from mmengine.model import BaseModule
    from torch import nn

    class Net(BaseModule):
        def __init__(self, init_cfg=None):
            super().__init__(init_cfg=init_cfg)
            self.block = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
    """,
)
case(
    "TL401",
    "a script that goes on where it was",
    False,
    """\
    import torch
    from torch import nn

    def train(model, loader, optimizer):
        for x in loader:
            model(x).mean().backward()
            optimizer.step()

    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
    model.load_state_dict(torch.load("last.pt"))
    """,
)
case(
    "TL406",
    "a logarithm of many",
    False,
    """\
    import torch

    def forward(x):
        return torch.log(torch.softmax(x, dim=-1))
    """,
)
case(
    "TL406",
    "digits that nobody needs",
    True,
    """\
    import torch

    def forward(x, y):
        return y * torch.log(x**2 + 1)
    """,
)
case(
    "TL406",
    "an exponential that nobody looks at near zero",
    True,
    """\
    import torch

    def forward(x, y):
        return y / (torch.exp(x * y) - 1)
    """,
)
case(
    "TL406",
    "a root of a difference",
    False,
    """\
    import torch

    def forward(t):
        return torch.sqrt(torch.exp(9 * t**2 + t) - 1)
    """,
)
case(
    "TL406",
    "the inverse of softplus",
    False,
    """\
    import torch

    def inverse(x):
        less = torch.exp(x) - 1
        return torch.log(less)
    """,
)
case(
    "TL406",
    "a density",
    False,
    """\
    import torch

    class Pareto:
        def log_prob(self, x):
            return torch.log(1 + self.shape * x.abs()) / self.shape
    """,
)
case(
    "TL708",
    "a number that Lightning draws",
    True,
    """\
    import lightning as L

    class Model(L.LightningModule):
        def training_step(self, batch, index):
            loss = self.loss(batch)
            self.log("loss", loss, sync_dist=True)
            return loss
    """,
)

LOOP = """\
    import torch
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    class Texts(Dataset):
        def __init__(self, texts, tokenizer):
            self.texts, self.tokenizer = texts, tokenizer

        def __len__(self):
            return len(self.texts)

        def __getitem__(self, index):
            return self.tokenizer(self.texts[index], truncation=True)

    def tokenized(texts, tokenizer):
        def tokenize(rows):
            return tokenizer(rows["text"], truncation=True)

        return texts.map(tokenize, batched=True).shuffle(seed=0)["train"]

    def run(model, images, texts, tokenizer, rows):
        model.cuda()
        for x in LOADER:
            model(x.cuda())
    """
LOADERS = (
    ("TL101", "images", False, "DataLoader(images, batch_size=8)"),
    ("TL101", "texts to tokenize", True, "DataLoader(Texts(texts, tokenizer), batch_size=8)"),
    ("TL101", "texts that were tokenized", True, "DataLoader(tokenized(texts, tokenizer), batch_size=8)"),
    ("TL102", "tokens", True, "DataLoader(Texts(texts, tokenizer), batch_size=8, num_workers=4)"),
    ("TL102", "batches", False, "DataLoader(images, batch_size=8, num_workers=4)"),
    ("TL102", "single items in random order", False, "DataLoader(images, shuffle=True, num_workers=4)"),
    ("TL102", "single items", True, "DataLoader(images, batch_size=1, num_workers=4)"),
    ("TL102", "rows of a tensor", True, "DataLoader(TensorDataset(rows), batch_size=8, num_workers=4)"),
)
KEYS = """\
    import torch
    from torch.utils.data import DataLoader
    from data import Items

    @torch.no_grad()
    def sample(model, items):
        model = model.to("cuda")
        for batch in DataLoader(Items(items), batch_size=32):
            batch = {name: part.to("cuda", non_blocking=True) for name, part in batch.items()}
            yield model(**batch), batch["READ"]
    """
for _read, _low in (("attention_mask", True), ("images", False)):
    case("TL101", f"batches whose {_read} are read", _low, KEYS.replace("READ", _read))

for _code, _name, _low, _loader in LOADERS:
    case(_code, _name, _low, LOOP.replace("LOADER", _loader))
case(
    "TL101",
    "texts that were tokenized once there are some",
    True,
    """\
    import lightning as L
    from torch.utils.data import DataLoader

    class Texts(L.LightningDataModule):
        def __init__(self, texts, tokenizer):
            super().__init__()
            self.texts, self.tokenizer, self.train = texts, tokenizer, None

        def tokenized(self):
            return self.texts.map(lambda row: self.tokenizer(row["text"], truncation=True))

        def setup(self, stage):
            self.train = self.tokenized()["train"]

        def train_dataloader(self):
            return DataLoader(self.train, batch_size=8)
    """,
)
case(
    "TL410",
    "a module made for one call",
    True,
    """\
    from torch import nn

    def similarity(a, b):
        return nn.CosineSimilarity().forward(a, b)
    """,
)
case(
    "TL410",
    "a module that may have hooks",
    False,
    """\
    from torch import nn

    model = nn.Linear(8, 8)

    def scores(x):
        return model.forward(x)
    """,
)
case(
    "TL411",
    "tokens that are decoded",
    True,
    """\
    import torch
    from torch import nn

    @torch.no_grad()
    def generate(model: nn.Module, token, cache):
        tokens = token.cuda()
        for _ in range(100):
            logits, cache = model(token, cache)
            token = logits[:, -1:].argmax(-1)
            tokens = torch.cat((tokens, token), dim=1)
        return tokens
    """,
)
case(
    "TL411",
    "features of batches",
    False,
    """\
    import torch
    from torch import nn

    @torch.no_grad()
    def features(model: nn.Module, loader):
        found = torch.empty(0).cuda()
        for x in loader:
            found = torch.cat((found, model(x.cuda())))
        return found
    """,
)
case(
    "TL411",
    "results of things that the caller lists",
    True,
    """\
    import torch
    from torch import nn

    @torch.no_grad()
    def embed(model: nn.Module, prompts):
        found = torch.empty(0).cuda()
        for prompt in prompts:
            found = torch.cat((found, model(prompt)))
        return found
    """,
)
case(
    "TL411",
    "results for the pieces of a sequence",
    False,
    """\
    import torch
    from torch import nn

    class Embedder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Linear(8, 8)

        def forward(self, sequence):
            found = torch.empty(0).cuda()
            for piece in sequence.split(8, dim=-1):
                found = torch.cat((found, self.encode(piece)))
            return found
    """,
)
case(
    "TL701",
    "a wrapper, in place of which the program would have to be written for several processes",
    True,
    """\
    import torch
    from torch import nn

    model = nn.Linear(8, 8)
    if torch.cuda.is_available():
        model = nn.DataParallel(model).cuda()
    """,
)


case(
    "TL214",
    "as large as the program does not say",
    True,
    """\
    import numpy as np
    import torch

    def train(model, memory, optimizer):
        model.cuda()
        for _ in range(100):
            rewards = torch.from_numpy(np.array(memory.sample(64))).to("cuda", non_blocking=True)
            model(rewards).mean().backward()
            optimizer.step()
    """,
)
case(
    "TL214",
    "large data",
    False,
    """\
    import torch

    def train(model, optimizer):
        model.cuda()
        frames = torch.zeros(64, 3, 224, 224)
        for _ in range(100):
            frames[0] = 1.0
            model(frames.to("cuda", non_blocking=True)).mean().backward()
            optimizer.step()
    """,
)
case(
    "TL205",
    "the rate of the next step",
    True,
    """\
    import torch

    class Agent:
        def update(self, policy, storage, optimizer):
            policy.cuda()
            for batch in storage:
                kl = policy(batch.cuda()).mean()
                if kl > 0.02:
                    self.rate = max(1e-5, self.rate / 1.5)
                kl.backward()
                optimizer.step()
    """,
)
case(
    "TL205",
    "an end of the training that depends on the value",
    True,
    """\
    import torch

    def update(policy: torch.nn.Module, loader, optimizer, most):
        policy.cuda()
        for x in loader:
            kl = policy(x.cuda()).mean()
            if most and kl > most:
                break
            kl.backward()
            optimizer.step()
    """,
)
case(
    "TL205",
    "a loss that is not finite",
    True,
    """\
    import torch

    def update(model: torch.nn.Module, loader, optimizer):
        model.cuda()
        for x in loader:
            loss = model(x.cuda()).mean()
            if torch.isnan(loss):
                break
            loss.backward()
            optimizer.step()
    """,
)
case(
    "TL205",
    "an assertion about the loss of each step",
    True,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        model.cuda()
        for x in loader:
            loss = model(x.cuda()).mean()
            assert not torch.isnan(loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)
case(
    "TL202",
    "a check of the loss of each step that ends the program",
    True,
    """\
    import math
    import sys

    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        model.cuda()
        for x in loader:
            loss = model(x.cuda()).mean()
            if not math.isfinite(loss.item()):
                print("the loss is not finite")
                sys.exit(1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)
case(
    "TL201",
    "the matrix of a file that is read, which nothing shows to run often",
    True,
    """\
    import torch

    def read(path, device):
        points = torch.load(path).cuda()
        affine = torch.eye(4).to(points.device)
        return points, affine
    """,
)
case(
    "TL201",
    "as many indices as a tensor has rows",
    False,
    """\
    import torch

    def project(distribution, atoms):
        rows = distribution.shape[0]
        offset = torch.linspace(0, (rows - 1) * atoms, rows).long().cuda()
        return distribution.view(-1)[offset]
    """,
)
case(
    "TL202",
    "the end of an episode",
    True,
    """\
    import torch

    @torch.no_grad()
    def evaluate(agent: torch.nn.Module, env):
        agent.cuda()
        obs, done = env.reset().cuda(), False
        while not done:
            action = agent(obs)
            obs, ended = env.step(action)
            obs, ended = torch.as_tensor(obs, device="cuda"), torch.as_tensor(ended, device="cuda")
            done = ended.item()
    """,
)
case(
    "TL201",
    "once for each pass over the data",
    True,
    """\
    import torch

    @torch.no_grad()
    def score(model: torch.nn.Module, loader, count):
        model.cuda()
        scores = torch.full((count, 4), -100.0).to("cuda")
        for i, x in enumerate(loader):
            scores[i] = model(x.cuda())
        return scores
    """,
)
case(
    "TL205",
    "a branch that selects by the same mask",
    True,
    """\
    import torch

    class Loss(torch.nn.Module):
        def forward(self, scores, labels):
            scores, labels = scores.cuda(), labels.cuda()
            positive = labels > 0
            if positive.sum() > 0:
                loss = scores[positive].mean()
            else:
                loss = scores.sum() * 0
            return loss
    """,
)
case(
    "TL206",
    "values that a loop goes through",
    True,
    """\
    import torch

    class Frames(torch.nn.Module):
        def forward(self, chains):
            found = torch.unique(chains.cuda())
            for chain in found:
                self.visit(chain)
    """,
)
case(
    "TL206",
    "computed for the selected elements",
    True,
    """\
    import torch

    class Embedding(torch.nn.Module):
        def forward(self, waves, encoder):
            waves = waves.cuda()
            optical = waves > 0
            embedded = torch.zeros_like(waves)
            embedded[optical] = torch.nn.functional.layer_norm(waves[optical], (8,))
            return embedded
    """,
)
case(
    "TL203",
    "joined with what is on the host",
    True,
    """\
    import torch

    def update(policy: torch.nn.Module, loader, optimizer):
        policy.cuda()
        limit = torch.tensor([1.0])
        for x in loader:
            ratio = policy(x.cuda())
            clipped = torch.min(limit, ratio.cpu())
            ratio.mean().backward()
            optimizer.step()
    """,
)
case(
    "TL213",
    "an observation that an action is asked for",
    True,
    """\
    import numpy as np
    import torch

    def train(policy: torch.nn.Module, env, optimizer):
        policy.cuda()
        state = env.reset()
        for _ in range(100):
            with torch.no_grad():
                seen = torch.from_numpy(np.array(state, dtype=np.float32)).to("cuda")
                action = policy(seen).argmax().item()
            state, reward, done, _ = env.step(action)
    """,
)
case(
    "TL213",
    "a batch of memories",
    False,
    """\
    import numpy as np
    import torch

    def train(policy: torch.nn.Module, memory, optimizer):
        policy.cuda()
        for _ in range(100):
            states = torch.from_numpy(np.array(memory.sample(64))).to("cuda")
            loss = policy(states).mean()
            loss.backward()
            optimizer.step()
            print(loss.item())
    """,
)
case(
    "TL215",
    "a number in a table",
    True,
    """\
    import torch

    class Smoothing(torch.nn.Module):
        def forward(self, target):
            weights = torch.zeros(3, 3, device="cuda")
            weights[1, 1] = 1
            return target * weights.sum()
    """,
)
case(
    "TL215",
    "a number for each token",
    False,
    """\
    import torch

    @torch.no_grad()
    def generate(model: torch.nn.Module, tokens):
        model.cuda()
        tokens, lengths = tokens.cuda(), torch.zeros(8, device="cuda")
        for i in range(100):
            tokens = model(tokens)
            lengths[0] = i
        return tokens, lengths
    """,
)
case(
    "TL202",
    "a loss beside results that a step of training collects without a graph",
    False,
    """\
    import torch
    import torch.nn.functional as F

    def train(model, loader, optimizer):
        model.train().cuda()
        total, scores = 0.0, []
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            optimizer.zero_grad()
            out = model(x)
            loss = F.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            total += loss.item()
            with torch.no_grad():
                scores.extend(torch.sigmoid(out).cpu().numpy())
        return total, scores
    """,
)
case(
    "TL203",
    "results that a step of training collects without a graph",
    False,
    """\
    import torch
    import torch.nn.functional as F

    def train(model, loader, optimizer):
        model.train().cuda()
        scores = []
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            optimizer.zero_grad()
            out = model(x)
            F.cross_entropy(out, y).backward()
            optimizer.step()
            with torch.no_grad():
                scores.extend(torch.sigmoid(out).cpu().numpy())
        return scores
    """,
)
case(
    "TL213",
    "an item that a list repeats, which is no input",
    False,
    """\
    import torch

    class Translator:
        def __init__(self, decoder, vocabulary):
            self.device = torch.device("cuda")
            self.encoder, self.decoder = torch.nn.GRU(8, 8).to(self.device), decoder.to(self.device)
            self.start = vocabulary["start"]

        def run(self, sentences):
            state = self.encoder(sentences)
            first = torch.tensor([[self.start] * sentences.size(1)], device=self.device)
            return self.decoder(first, state)

        def translate(self, loader):
            for sentences in loader:
                self.run(sentences.to(self.device))
    """,
)
case(
    "TL203",
    "results of an evaluation, which are wanted in host memory in the end",
    True,
    """\
    import torch

    def predict(model, loader):
        model.eval().cuda()
        outputs = []
        with torch.no_grad():
            for x in loader:
                outputs.append(model(x.cuda()).cpu())
        return torch.cat(outputs)
    """,
)
case(
    "TL202",
    "a loss in a round of an evaluation that copies its predictions to the host behind it",
    True,
    """\
    import torch

    def evaluate(model, criterion, loader):
        model.eval().cuda()
        total, found = 0.0, []
        with torch.no_grad():
            for x, y in loader:
                scores = model(x.cuda())
                total += criterion(scores, y.cuda()).item()
                _, chosen = torch.max(scores, 1)
                found.extend(chosen.cpu().numpy())
        return total, found
    """,
)
case(
    "TL202",
    "a loss in a round of an evaluation whose results a method copies to the host",
    True,
    """\
    import torch

    class Results:
        def __init__(self):
            self.scores = []

        def append(self, scores):
            self.scores.extend(scores.cpu().numpy())

    @torch.no_grad()
    def evaluate(model, criterion, loader):
        model.eval().cuda()
        total, results = 0.0, Results()
        for x, y in loader:
            scores = model(x.cuda())
            total += criterion(scores, y.cuda()).item()
            results.append(scores)
        return total, results
    """,
)
case(
    "TL202",
    "a loss in a round of an evaluation that copies predictions to the host now and then",
    False,
    """\
    import torch

    def evaluate(model, criterion, loader):
        model.eval().cuda()
        total, found = 0.0, []
        with torch.no_grad():
            for i, (x, y) in enumerate(loader):
                scores = model(x.cuda())
                total += criterion(scores, y.cuda()).item()
                if i % 100 == 0:
                    found.extend(scores.cpu().numpy())
        return total, found
    """,
)
case(
    "TL202",
    "lists of results of an evaluation",
    True,
    """\
    import torch
    from sklearn.metrics import roc_auc_score

    def evaluate(model, loader):
        model.eval().cuda()
        found = []
        with torch.no_grad():
            for x in loader:
                found.extend(model(x.cuda()).tolist())
        return roc_auc_score([0] * len(found), found)
    """,
)
case(
    "TL203",
    "labels that the host has sent, next to predictions that it copies",
    True,
    """\
    import torch

    def evaluate(model, loader):
        model.eval().cuda()
        found, wanted = [], []
        with torch.no_grad():
            for x, y in loader:
                y = y.cuda()
                found.extend(model(x.cuda()).argmax(1).cpu().numpy())
                wanted.extend(y.cpu().numpy())
        return found, wanted
    """,
)
case(
    "TL203",
    "labels that the host has sent, and nothing else",
    False,
    """\
    import torch

    def evaluate(model, metric, loader):
        model.eval().cuda()
        wanted = []
        with torch.no_grad():
            for x, y in loader:
                y = y.cuda()
                metric.update(model(x.cuda()).argmax(1), y)
                wanted.extend(y.cpu().numpy())
        return metric.compute(), wanted
    """,
)
case(
    "TL203",
    "a copy of each item of a batch",
    False,
    """\
    import torch

    def embed(model, loader):
        model.eval().cuda()
        found = []
        with torch.no_grad():
            for x in loader:
                vectors = model(x.cuda())
                for i in range(len(x)):
                    found.append(vectors[i].cpu())
        return found
    """,
)
case(
    "TL203",
    "what a detector gives for each picture, which has sizes of its own",
    True,
    """\
    import torch

    def detect(model, loader):
        model.eval().cuda()
        found = []
        with torch.no_grad():
            for images in loader:
                outputs = model([image.cuda() for image in images])
                for i in range(len(images)):
                    found.append(outputs[i]["boxes"].data.cpu().numpy())
        return found
    """,
)
case(
    "TL203",
    "a loss that is copied in training",
    False,
    """\
    import torch

    def train(model, loader, optimizer):
        model.cuda()
        losses = []
        for x in loader:
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().cpu())
        return torch.stack(losses).mean()
    """,
)
case(
    "TL411",
    "as many rounds as a layer has heads",
    True,
    """\
    import torch
    from torch import nn

    def attention(query, heads):
        for i in range(heads):
            head = query[:, i].softmax(-1)
            if i == 0:
                output = head
            else:
                output = torch.cat((output, head), dim=1)
        return output

    class Heads(nn.Module):
        def __init__(self, heads):
            super().__init__()
            self.heads = heads

        def forward(self, query):
            return attention(query, self.heads)
    """,
)
case(
    "TL411",
    "as many rounds as a sequence is long",
    False,
    """\
    import torch
    from torch import nn

    class Steps(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, width)

        def forward(self, x):
            output = self.layer(x[:, :1])
            for i in range(1, x.shape[1]):
                output = torch.cat((output, self.layer(x[:, i : i + 1])), dim=1)
            return output
    """,
)
case(
    "TL411",
    "a mask that is filled up to the length of others",
    True,
    """\
    import torch

    def fill(masks, length, step):
        found = []
        for mask in masks:
            while mask.shape[1] < length:
                mask = torch.cat([mask, torch.zeros(1, step, device=mask.device)], dim=1)
            found.append(mask)
        return torch.cat(found)
    """,
)
case(
    "TL205",
    "a comparison in a loop whose condition waits",
    True,
    """\
    import torch
    from torch import nn

    class Solver(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.slope = nn.Linear(width, width)

        def forward(self, y, times):
            y, times = y.cuda(), times.cuda()
            now, end = times[0], times[-1]
            while now < end:
                now = min(now + 0.1, end)
                y = self.slope(y)
            return y
    """,
)
case(
    "TL205",
    "a condition, behind which the host reads a size",
    True,
    """\
    import torch
    from torch import nn

    class Mixed(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, width)

        def forward(self, x, valid):
            x, valid = x.cuda(), valid.cuda()
            scale = x.mean() if x.sum() > 0 else x.amax()
            kept = x[valid > 0]
            return self.layer(kept.mean(0)) * scale
    """,
)
case(
    "TL213",
    "pictures that a model is asked about",
    True,
    """\
    import numpy as np
    import torch

    def predict(model: torch.nn.Module, folders):
        model.cuda()
        found = []
        with torch.no_grad():
            for pictures in folders:
                x = torch.from_numpy(np.stack(pictures)).to("cuda")
                found.append(model(x))
        return found
    """,
)
case(
    "TL213",
    "constants that are copied for each batch that is evaluated",
    False,
    """\
    import torch

    def predict(model: torch.nn.Module, loader):
        model.cuda()
        found = []
        with torch.no_grad():
            for x in loader:
                mean = torch.tensor([0.485, 0.456, 0.406], device="cuda")
                found.append(model(x.cuda() - mean))
        return found
    """,
)
case(
    "TL213",
    "an array that a forward pass has worked out on the host",
    True,
    """\
    import numpy as np
    import torch
    from torch import nn

    class Masked(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, width)

        def forward(self, x):
            mask = torch.from_numpy(np.random.rand(x.shape[0]) < 0.5).to(x.device)
            return self.layer(x) * mask[:, None]


    model = Masked(8).cuda()
    """,
)
case(
    "TL202",
    "an answer by which a forward pass goes on one way or the other",
    True,
    """\
    import torch
    from torch import nn

    class Matcher(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, width)

        def forward(self, x):
            costs = self.layer(x.cuda())
            finite = torch.isfinite(costs).all().item()
            if not finite:
                costs = self.layer(costs.nan_to_num())
            return costs
    """,
)
case(
    "TL206",
    "a tensor as large as the device has counted",
    True,
    """\
    import torch
    from torch import nn

    class Padded(nn.Module):
        def forward(self, x, lengths):
            x, lengths = x.cuda(), lengths.cuda()
            longest = lengths.amax()
            table = torch.zeros((x.shape[0], longest + 1), device=x.device)
            return table.scatter(1, lengths[:, None], 1.0)
    """,
)
case(
    "TL203",
    "scores that a method of a trainer works out without gradients",
    True,
    """\
    import numpy as np
    import torch

    class Explainer:
        def __init__(self, model: torch.nn.Module, optimizer):
            self.model, self.optimizer = model.cuda(), optimizer

        def train_step(self, x):
            loss = self.model(x.cuda()).sum()
            loss.backward()
            self.optimizer.step()
            with torch.no_grad():
                scores = []
                for i in range(0, x.size(0), 16):
                    scores.append(self.model(x[i : i + 16].cuda()).cpu().numpy())
            return np.concatenate(scores)
    """,
)
case(
    "TL202",
    "a loss that a progress bar shows, by way of a variable",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer, bar):
        model.cuda()
        for x in loader:
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            value = loss.item()
            bar.set_postfix({"loss": f"{value:.4f}"})
    """,
)
case(
    "TL202",
    "a total that a progress bar shows at each step",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer, bar):
        model.cuda()
        total = 0.0
        for i, x in enumerate(loader):
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            bar.set_description(f"loss {total / (i + 1):.4f}")
    """,
)
case(
    "TL202",
    "a loss beside a selection that is only summed, which could both go",
    False,
    """\
    import torch
    import torch.nn.functional as F

    @torch.no_grad()
    def evaluate(model: torch.nn.Module, loader):
        model.cuda().eval()
        right = total = 0.0
        for x, y in loader:
            out = model(x.cuda())
            kept = out[y.cuda() > 0]
            right += kept.argmax(dim=1).eq(1).sum()
            total += F.mse_loss(out, y.cuda()).item()
        return right, total
    """,
)
case(
    "TL205",
    "a message about entries that are not finite, in every step of a training",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        model.cuda()
        for step, x in enumerate(loader):
            outputs = {"image": model(x.cuda())}
            for name, value in outputs.items():
                if torch.isnan(value).any():
                    print(f"{name} is not finite")
            outputs["image"].mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    """,
)
case(
    "TL202",
    "a norm that is read behind the gradients of a step, which a large loss ends before",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        model.cuda()
        norms = []
        for x in loader:
            loss = model(x.cuda()).mean()
            if loss > 100:
                break
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            norms.append(norm.item())
        return norms
    """,
)
case(
    "TL202",
    "a total that a progress bar of an evaluation shows for each batch",
    True,
    """\
    import torch

    @torch.no_grad()
    def evaluate(model: torch.nn.Module, loader, bar):
        model.cuda().eval()
        total = 0.0
        for i, x in enumerate(loader):
            total += model(x.cuda()).mean().item()
            bar.set_description(f"loss {total / (i + 1):.4f}")
    """,
)
case(
    "TL202",
    "a total that a progress bar shows now and then",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer, bar):
        model.cuda()
        total = 0.0
        for i, x in enumerate(loader):
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if i % 100 == 0:
                bar.set_description(f"loss {total / (i + 1):.4f}")
    """,
)
case(
    "TL202",
    "a total that a progress bar shows every other step",
    False,
    """\
    import torch
    from tqdm import tqdm


    def train(model, loader, optimizer):
        model.cuda()
        total, print_freq = 0.0, 2
        bar = tqdm(loader)
        for step, x in enumerate(bar, 1):
            loss = model(x.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if step % print_freq == 0:
                bar.set_description(f"{total / step:.3f}")
    """,
)
case(
    "TL202",
    "a loss that a progress bar shows, in a text that a variable holds",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer, bar):
        model.cuda()
        for x in loader:
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            status = "loss {:.4f}".format(loss.item())
            bar.set_description(status)
    """,
)
case(
    "TL202",
    "a total over the parts of a batch that a progress bar shows at each step",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, batches, optimizer, bar, steps, parts):
        model.cuda()
        for _ in range(steps):
            total = 0.0
            for _ in range(parts):
                loss = model(next(batches).cuda()).mean() / parts
                total += loss.item()
                loss.backward()
            bar.set_description(f"loss {total:.4f}")
            optimizer.step()
            optimizer.zero_grad()
    """,
)
case(
    "TL202",
    "a total of an epoch that a progress bar of the epochs shows",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer, bar, epochs):
        model.cuda()
        for _ in range(epochs):
            total = 0.0
            for x in loader:
                loss = model(x.cuda()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            bar.set_description(f"loss {total:.4f}")
    """,
)
case(
    "TL202",
    "a loss that a log keeps of each step",
    False,
    """\
    import torch
    import wandb

    def train(model: torch.nn.Module, loader, optimizer):
        model.cuda()
        for x in loader:
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            wandb.log({"loss": loss.item()})
    """,
)
case(
    "TL202",
    "a loss that is shown in a line which the next step overwrites",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        model.cuda()
        for x in loader:
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"loss {loss.item():.4f}", end="\\r")
    """,
)
case(
    "TL202",
    "a loss that a log keeps of every hundredth step",
    False,
    """\
    import torch
    import wandb

    def train(model: torch.nn.Module, loader, optimizer):
        model.cuda()
        for step, x in enumerate(loader):
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            value = loss.item()
            if step % 100 == 0:
                wandb.log({"loss": value})
    """,
)
case(
    "TL213",
    "a batch of an agent's memory, which acts before it learns",
    True,
    """\
    import random

    import numpy as np
    import torch

    class Agent:
        def __init__(self, net, optimizer):
            self.net, self.optimizer, self.memory = net.cuda(), optimizer, []

        def act(self, state):
            values = self.net(torch.from_numpy(state).cuda())
            return int(values.argmax())

        def learn(self):
            states = np.stack(random.sample(self.memory, 64))
            loss = self.net(torch.from_numpy(states).cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

        def run(self, env, state, steps):
            for _ in range(steps):
                action = self.act(state)
                state, reward, done, _ = env.step(action)
                self.memory.append(state)
                self.learn()
    """,
)
case(
    "TL208",
    "a constant that is sent where the next line decides by a value of the device",
    True,
    """\
    import torch
    from torch import nn

    MEAN = torch.tensor([0.4, 0.5, 0.6])

    class Normalize(nn.Module):
        def forward(self, x: torch.Tensor):
            mean = MEAN.to(x.device)
            if x.max() > 1.0:
                raise ValueError("images have to lie between 0 and 1")
            return x - mean
    """,
)
case(
    "TL202",
    "the sum of a meter in a text that a progress bar shows at each step",
    False,
    """\
    import torch

    def train(model: torch.nn.Module, loader, optimizer, meter, metrics, bar):
        model.cuda()
        for x in bar:
            out = model(x.cuda())
            for metric in metrics:
                meter.count(metric(out).cuda().item())
            optimizer.zero_grad()
            out.mean().backward()
            optimizer.step()
            text = "train"
            for name in meter.names:
                text += f" {name} {meter[name]:.4f}"
            bar.set_description(text)
    """,
)
case(
    "TL202",
    "losses that a function shows on a progress bar at each step",
    False,
    """\
    import torch

    class Trainer:
        def __init__(self, model, optimizer, bar):
            self.model, self.optimizer, self.bar = model.cuda(), optimizer, bar

        def run(self, loader):
            for x in loader:
                loss = self.model(x.cuda()).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.show({"loss": loss})

        def show(self, losses):
            for name in losses:
                losses[name] = round(losses[name].detach().cuda().item(), 4)
            self.bar.set_postfix(losses)
    """,
)
case(
    "TL202",
    "the loss of a function that is one step, and shows it on a progress bar",
    False,
    """\
    import torch

    class Trainer:
        def __init__(self, model, optimizer, bar):
            self.model, self.optimizer, self.bar = model.cuda(), optimizer, bar

        def run(self, loader):
            for x in loader:
                self.step(x)

        def step(self, x):
            loss = self.model(x.cuda()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            loss = loss.item()
            self.bar.set_postfix(loss=loss)
    """,
)
case(
    "TL202",
    "the total of a function that is one epoch, and shows it on a progress bar",
    False,
    """\
    import torch

    class Trainer:
        def __init__(self, model, optimizer, bar):
            self.model, self.optimizer, self.bar = model.cuda(), optimizer, bar

        def epoch(self, loader):
            total = 0.0
            for x in loader:
                loss = self.model(x.cuda()).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            self.bar.set_postfix(loss=total)
    """,
)
case(
    "TL404",
    "an activation that is differentiated by hand",
    True,
    """\
    import torch

    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * torch.sigmoid(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            part = torch.sigmoid(x)
            return grad * part * (1 + x * (1 - part))
    """,
)
case(
    "TL205",
    "a distribution that factorizes its covariance, and waits for that",
    True,
    """\
    import torch
    from torch import nn
    from torch.distributions import MultivariateNormal

    class Policy(nn.Module):
        def forward(self, mean, deviations):
            mean, deviations = mean.cuda(), deviations.cuda()
            return MultivariateNormal(mean, torch.diag_embed(deviations))
    """,
)
case(
    "TL205",
    "a distribution that has nothing to factorize",
    False,
    """\
    from torch import nn
    from torch.distributions import Normal

    class Policy(nn.Module):
        def forward(self, mean, deviations):
            return Normal(mean.cuda(), deviations.cuda())
    """,
)
case(
    "TL206",
    "what a model makes of tensors that were selected before",
    True,
    """\
    import torch
    from torch import nn

    class Sparse(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, width)

        def forward(self, x, levels):
            mask = levels.cuda() > 0
            out = torch.zeros_like(x.cuda())
            few = x.cuda()[mask]
            scaled = self.layer(few)
            out[mask] = self.layer(few)
            return out + scaled.mean()
    """,
)
case(
    "TL205",
    "how many elements to take, within bounds",
    True,
    """\
    import torch
    from torch import nn

    class Hardest(nn.Module):
        def forward(self, losses, least):
            losses = losses.cuda()
            hard = (losses > 1).sum()
            few = min(max(hard, least), 8)
            return torch.topk(losses, k=few).values.mean()
    """,
)


case(
    "TL202",
    "how far a tensor is shifted, which takes a number",
    True,
    """\
    import torch
    from torch import nn

    class Roll(nn.Module):
        def forward(self, x, place):
            x, place = x.cuda(), place.cuda().argmax()
            return torch.roll(x, -place.item(), -1)
    """,
)
case(
    "TL202",
    "numbers that are read one by one, although one copy would do",
    False,
    """\
    import torch
    from torch import nn

    class Rolls(nn.Module):
        def forward(self, x, corr):
            delays, total = torch.topk(corr.cuda(), 4, dim=-1)[1], 0
            for i in range(4):
                total = total + torch.roll(x.cuda(), -int(delays[i]), -1)
            return total
    """,
)
case(
    "TL202",
    "numbers that a comprehension reads one by one, although one copy would do",
    False,
    """\
    import torch

    @torch.no_grad()
    def evaluate(model, loader):
        model.eval().cuda()
        hits = 0
        for x, y in loader:
            ranks = model(x.cuda()).argsort()
            for rank in [row[0].item() for row in ranks]:
                if rank < 10:
                    hits += 1
        return hits
    """,
)
case(
    "TL205",
    "elements that a comprehension decides on, next to a copy of results",
    False,
    """\
    import torch

    @torch.no_grad()
    def evaluate(model, loader):
        model.eval().cuda()
        truth, found = [], []
        for x, y in loader:
            y = y.cuda()
            scores = model(x.cuda()).squeeze(1)
            truth.append(list(y.cpu().numpy()))
            found.append([1.0 if score >= 0.5 else 0.0 for score in scores])
        return truth, found
    """,
)
case(
    "TL202",
    "a comprehension over what a mask selects, which waits for its size anyway",
    False,
    """\
    import torch
    from torch import nn

    class Loss(nn.Module):
        def forward(self, scores, boxes, mask):
            best = scores.argmax(-1)[mask]
            chosen = torch.tensor([list(range(place * 5, place * 5 + 4)) for place in best])
            return boxes[mask].gather(1, chosen.to(boxes.device)).sum()

    loss = Loss()
    model = nn.Linear(2, 2).cuda()

    def train(loader, optimizer):
        for x, boxes, mask in loader:
            optimizer.zero_grad()
            loss(model(x.cuda()), boxes.cuda(), mask.cuda()).backward()
            optimizer.step()
    """,
)
case(
    "TL202",
    "a list that another function of the file makes the padding of",
    True,
    """\
    import torch
    import torch.nn.functional as F
    from torch import nn

    def reordered(pads):
        found = []
        for begin, end in zip(pads[: len(pads) // 2], pads[len(pads) // 2 :]):
            found.extend([begin, end])
        return found

    class Pad(nn.Module):
        def forward(self, x: torch.Tensor, pads: torch.Tensor):
            widths = reordered(pads.cuda().tolist())
            return F.pad(x.cuda(), pad=widths)
    """,
)
case(
    "TL202",
    "a list that is only looked at when all rounds are over",
    False,
    """\
    import torch
    import torch.nn.functional as F

    def lengths(model, loader):
        found = []
        for x in loader:
            found.append(model(x.cuda()).sum().item())
        return F.pad(torch.ones(3), pad=[len(found), 0])
    """,
)
case(
    "TL210",
    "a number that is checked on the device at once",
    True,
    """\
    import torch
    from torch import nn

    class Pick(nn.Module):
        def forward(self, x):
            x = x.cuda()
            if self.training:
                scale = torch.tensor(0.5, device="cuda")
            else:
                scale = torch.tensor(0.1, device="cuda")
            assert (x < scale).all()
            return x
    """,
)
case(
    "TL210",
    "a number that is checked on the device once a model has run",
    False,
    """\
    import torch
    from torch import nn

    class Pick(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            scale = torch.tensor(0.5, device="cuda")
            x = self.layer(x.cuda())
            assert (x < scale).all()
            return x
    """,
)
case(
    "TL210",
    "a size that the other processes send is read in the loop behind",
    True,
    """\
    import torch
    import torch.distributed as dist

    def gathered(x):
        sizes = list(torch.empty(4, dtype=torch.long, device="cuda"))
        dist.all_gather(sizes, torch.tensor(x.shape[0], device="cuda"))
        shapes = []
        for size in sizes:
            shape = list(x.shape)
            shape[0] = size.item()
            shapes.append(torch.Size(shape))
        return [x.new_empty(shape) for shape in shapes]

    def train(model, loader, optimizer):
        for x in loader:
            loss = model(x.cuda()).mean()
            loss.backward()
            optimizer.step()
            gathered(x)
    """,
)


case(
    "TL601",
    "images of any size, one after the other",
    True,
    """\
    import torch
    from torch import nn

    class Enhancer(nn.Module):
        @torch.no_grad()
        def predict(self, image):
            result = self(image.unsqueeze(0).cuda()).cpu()
            torch.cuda.empty_cache()
            return result

    def main(paths, read, write):
        model = Enhancer().cuda()
        for path in paths:
            write(path, model.predict(read(path)))
    """,
)
case(
    "TL601",
    "an optimizer that keeps its state on the host",
    True,
    """\
    import torch

    class Momentum(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    average = self.state[p]["average"].to("cuda").lerp_(p.grad, 0.1)
                    p.add_(average, alpha=-group["lr"])
                    self.state[p]["average"] = average.to("cpu")
                torch.cuda.empty_cache()
    """,
)
case(
    "TL601",
    "batches that are evaluated",
    False,
    """\
    import torch

    @torch.no_grad()
    def evaluate(model, loader):
        for images in loader:
            yield model(images.cuda()).cpu()
            torch.cuda.empty_cache()
    """,
)


@pytest.mark.parametrize(
    ("code", "low", "text"),
    [(code, low, text) for code, _, low, text in CASES],
    ids=[f"{c}-{n}" for c, n, *_ in CASES],
)
def test_little_is_at_stake_where_a_change_gains_little(code: str, low: bool, text: str) -> None:
    settings = LintSettings(rules=(code,), target=Target.parse("2.14"))
    found = check(Source(Path("a.py"), text), settings)
    assert found
    assert {diagnostic.impact is Impact.LOW for diagnostic in found} == {low}


RMS_NORM = """\
import torch
from torch import nn

class RMSNorm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
"""
TANH_GELU = """\
import math
import torch
from torch import nn

class GELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))
"""
ATTENTION = """\
import torch
from torch import nn

class Attention(nn.Module):
    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-2, -1)) / 8
        return torch.matmul(scores.softmax(-1), v)
"""


@pytest.mark.parametrize(
    ("code", "text", "since"),
    [("TL402", ATTENTION, "2.0"), ("TL404", TANH_GELU, "1.12"), ("TL405", RMS_NORM, "2.4")],
)
def test_little_is_at_stake_for_who_supports_releases_without_the_function(
    code: str, text: str, since: str
) -> None:
    for declared, low in ((f">={since}", False), (">=1.9", True), (None, False)):
        target = Target.unknown() if declared is None else Target.parse(declared)
        (found,) = check(Source(Path("a.py"), text), LintSettings(rules=(code,), target=target))
        assert (found.impact is Impact.LOW) is low, declared


CHECKPOINT = """\
import torch
{}

{}

def resume(model, path):
    # See https://pytorch.org for how checkpoints are made.
    model.load_state_dict(torch.load({})["model"])
"""
SAVE = """\
def save(model, path):
    torch.save({"model": model.state_dict()}, path)
"""
RESOURCES = "import io\nfrom importlib import resources"
DOWNLOAD = "from huggingface_hub import hf_hub_download"


@pytest.mark.parametrize(
    ("imported", "saved", "loaded", "low"),
    [
        ("", SAVE, "path", True),
        ("", "", "path", False),
        (DOWNLOAD, SAVE, 'hf_hub_download(path, "weights.bin")', False),
        ("import os", "", 'os.path.join(os.path.dirname(__file__), "weights.bin")', True),
        ("import torch as th", SAVE.replace("torch", "th"), "path", True),
        (DOWNLOAD, SAVE.replace(", path)\n", ', "%s/last.pt" % path)\n'), '"%s/last.pt" % path', True),
        (DOWNLOAD, SAVE.replace(", path)\n", ', f"{path}/last.pt")\n'), 'f"{path}/other.pt"', False),
        (RESOURCES, SAVE, 'io.BytesIO(resources.read_binary("weights", pretrained))', True),
    ],
)
def test_little_is_at_stake_in_checkpoints_of_the_program_itself(
    imported: str, saved: str, loaded: str, low: bool
) -> None:
    settings = LintSettings(rules=("TL904",), target=Target.parse("2.5"))
    (found,) = check(Source(Path("a.py"), CHECKPOINT.format(imported, saved, loaded)), settings)
    assert (found.impact is Impact.LOW) is low
    assert (found.slight is not None) is low


@pytest.mark.parametrize(
    ("releases", "low"), [(">=1.8,<2.0", [False]), (">=1.8", [True]), (">=2.0", []), ("unknown", [])]
)
def test_little_is_at_stake_in_defaults_that_later_releases_have_changed(
    releases: str, low: list[bool]
) -> None:
    text = dedent(
        """\
        import torch

        def train(model, loader, loss):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in loader:
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()
        """
    )
    target = Target.unknown() if releases == "unknown" else Target.parse(releases)
    found = check(Source(Path("a.py"), text), LintSettings(rules=("TL302",), target=target))
    assert [each.impact is Impact.LOW for each in found] == low


def test_a_class_loads_what_it_has_saved() -> None:
    text = dedent(
        """\
        import torch
        from huggingface_hub import hf_hub_download

        class State:
            def load(self, snapshot):
                self.model.load_state_dict(torch.load(snapshot)["model"])

            def save(self, snapshot):
                torch.save({"model": self.model.state_dict()}, snapshot)

        def restore(snapshot):
            return torch.load(hf_hub_download(snapshot, "last.pt"))
        """
    )
    settings = LintSettings(rules=("TL904",), target=Target.parse("2.5"))
    own, downloaded = check(Source(Path("a.py"), text), settings)
    assert (own.impact, downloaded.impact) == (Impact.LOW, Impact.MEDIUM)
