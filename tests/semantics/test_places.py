"""Where nodes run: loops, throttling, hotness, phase, grad mode, compiled regions, the main guard."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.semantics import places
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase

PROGRAMS = {
    "modules that are made": """
        import torch
        from torch import nn

        class Field(nn.Module):
            def __init__(self, size):
                super().__init__()
                start = nn.Linear(size, size).cuda()(torch.ones(size).cuda())  #: torch.ones(size) => hot=no
                self.register_buffer("start", start)

        def build(sizes):
            return {size: Field(size) for size in sizes}  #: Field(size) => hot=no
    """,
    "a model that another library may have compiled": """
        import torch
        from torch import nn

        def boxes(found):
            return [each[each > 0] for each in found]  #: each[each > 0] => hot=rows

        def run(batches, compiled):
            part = nn.Linear(3, 3).cuda()
            if compiled:
                from fastpath import Engine

                part = Engine(part)
            for rows in batches:
                found = part(rows)
                boxes(found)
    """,
    "models that are compared": """
        import torch

        def measure(model, size):
            data = torch.randn(size).cuda()  #: torch.randn(size) => hot=no
            return model.cuda()(data)

        def report(models, names, size):
            for name, model in zip(names, models):
                print(name, measure(model, size))  #: print(name, measure(model, size)) => hot=no

        def ensemble(models, batches):
            for batch in batches:
                for model in models:
                    batch = model.cuda()(batch)  #: model.cuda()(batch) => hot=model
    """,
    "models that a round makes": """
        import torch
        from models import build, load

        def perplexity(model, texts):
            return sum(model(text) for text in texts)

        def report(paths, texts):
            for path in paths:
                model, tokens = load(path)
                score = perplexity(model, texts) + model(tokens)
                use(score)  #: use(score) => hot=no

        def adapt(model, batches):
            for batch in batches:
                model = build(model)
                print(model(batch))  #: print(model(batch)) => hot=batch
    """,
    "loops of every kind": """
        def f(items, n):
            for item in sorted(items):  #: sorted(items) => loops=none; item => loops=item
                for other in item:  #: item => loops=item
                    use(other)  #: use(other) => loops=other,item
            else:
                use(items)  #: use(items) => loops=none
            while n > 0:  #: n > 0 => loops=while
                n -= 1  #: n -= 1 => loops=while
            else:
                use(n)  #: use(n) => loops=none
            rows = [
                g(x, y)  #: g(x, y) => loops=comprehension
                for x in h(n)  #: h(n) => loops=none
                for y in k(x)  #: k(x) => loops=comprehension
            ]
            table = {
                key(z): value(z)  #: key(z) => loops=comprehension; value(z) => loops=comprehension
                for z in n
                if keep(z)  #: keep(z) => loops=comprehension
            }
            return lambda: use(rows)  #: use(rows) => loops=none


        async def g(stream):
            async for event in stream():  #: stream() => loops=none
                await use(event)  #: use(event) => loops=event


        for outer in range(3):
            @use(outer)  #: use(outer) => loops=outer
            def inner(default=use(outer)):  #: use(outer) => loops=outer
                return use(default)  #: use(default) => loops=none

            class Local(base(outer)):  #: base(outer) => loops=outer
                field = use(outer)  #: use(outer) => loops=outer
    """,
    "loops that are written out, and loops of epochs": """
        from torch import nn

        def train(net, ema, loader, optimizer, every):
            for step, x in enumerate(loader):
                net(x).backward()
                optimizer.step()
                if not step % every:
                    for model in (net, ema):
                        y = model(x)
                        use(1)  #: use(1) => hot=no
                for model in (net, ema):
                    use(2)  #: use(2) => hot=step


        class Agent:
            def train(self):
                while True:
                    self.model.advance(self.batch)
                    losses = self.train_epoch()
                    use(3)  #: use(3) => hot=no

            def train_epoch(self):
                for batch in self.loader:
                    self.model(batch).backward()
                    use(4)  #: use(4) => hot=batch


        class PadCollate(nn.Module):
            def forward(self, batch):
                use(5)  #: use(5) => hot=no phase=dataset
                return batch
    """,
    "periods that are options": """
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--accumulation", type=int, default=1)
        parser.add_argument("--log-every", type=int, default=50)
        args = parser.parse_args()
        accumulation = args.accumulation

        def train(loader):
            for step, batch in enumerate(loader):
                if (step + 1) % accumulation == 0:
                    use(1)  #: use(1) => throttled=no
                if step % args.log_every == 0:
                    use(2)  #: use(2) => throttled=yes
                if step % args.save_every == 0:
                    use(3)  #: use(3) => throttled=yes
    """,
    "marks of counters": """
        def training_loop(net, batches, total, interval):
            seen = mark = 0
            while True:
                net(next(batches)).backward()
                seen += 64
                done = seen >= total
                use(1)  #: use(1) => throttled=no
                if (not done) and (seen < mark + interval * 1000):
                    continue
                use(2)  #: use(2) => throttled=yes
                mark = seen
                if done:
                    break


        def reports(net, batches, interval):
            start = 0
            for seen, x in enumerate(batches):
                net(x).backward()
                if seen - start >= interval:
                    use(3)  #: use(3) => throttled=yes
                    start = seen
                if seen < start + interval:
                    use(4)  #: use(4) => throttled=no
    """,
    "what is looked up in a table of the module first": """
        TABLE = {}
        OTHER = {}

        def pointers(weights, key):
            if values := TABLE.get(key):
                return values
            use(1)  #: use(1) => throttled=yes
            TABLE[key] = made = send(weights)
            return made

        def strides(weights, key):
            values = TABLE.get(key)
            if values is not None:
                return values
            use(2)  #: use(2) => throttled=yes
            TABLE[key] = send(weights)
            return TABLE[key]

        def sent(weights, key, batch):
            if values := TABLE.get(key):
                return values
            use(3)  #: use(3) => throttled=no
            OTHER[key] = send(weights)
            return OTHER[key]
    """,
    "what is taken away once it is there": """
        class Runner:
            def take(self):
                if self.drafts is None:
                    return None
                use(1)  #: use(1) => throttled=no
                drafts = self.drafts
                self.drafts = None
                return drafts

            def scale_to(self, wanted):
                if self.scale == wanted:
                    return
                use(2)  #: use(2) => throttled=yes
                self.scale = wanted
    """,
    "the first process of a pipeline": """
        def step(model, batches, is_first_rank, is_last_stage, is_first):
            for batch in batches:
                if is_first_rank:
                    use(1)  #: use(1) => throttled=no
                if is_last_stage and model.ready:
                    use(2)  #: use(2) => throttled=no
                if is_first:
                    use(3)  #: use(3) => throttled=yes
    """,
    "periods by their values": """
        class Agent:
            def __init__(self, every=2):
                self.update_frequency = 2
                self.log_frequency = 100
                self.every = every

            def train(self, net, batches):
                for step, x in enumerate(batches):
                    net(x).backward()
                    if step % self.update_frequency == 0:
                        use(1)  #: use(1) => throttled=no
                    if step % self.log_frequency == 0:
                        use(2)  #: use(2) => throttled=yes
                    if step % self.every == 0:
                        use(3)  #: use(3) => throttled=yes
                    if step % 2 == 0:
                        use(4)  #: use(4) => throttled=no
    """,
    "sizes and what is missing are no counters": """
        def f(loader, model, x1, x2, timesteps, step, n1):
            n2, d = x2.shape[-2:]
            width = x1.size(1)
            batch = len(x1)
            for x in loader:
                model(x)
                if n2 == d and use(1):  #: use(1) => throttled=no
                    use(2)  #: use(2) => throttled=no
                if batch == width:
                    use(3)  #: use(3) => throttled=no
                if timesteps is None:
                    use(4)  #: use(4) => throttled=no
                if __debug__:
                    use(8)  #: use(8) => throttled=no
                if step == 0:
                    use(5)  #: use(5) => throttled=yes
                if n1 == 0:
                    use(6)  #: use(6) => throttled=yes


        class Trainer:
            def __init__(self):
                self.global_step = 0

            def fit(self, loader, model):
                for x in loader:
                    model(x)
                    self.global_step += 1
                    if self.global_step in (1, 10):
                        use(7)  #: use(7) => throttled=yes
    """,
    "modulo throttles": """
        def f(loader, model, args, writer, is_main, global_step, self):
            for i, (x, y) in enumerate(loader):
                loss = model(x)
                use(1)  #: use(1) => throttled=no
                if i % 100 == 0:  #: i % 100 => throttled=no
                    use(2)  #: use(2) => throttled=yes
                else:
                    use(3)  #: use(3) => throttled=no
                if (i + 1) % args.log_interval == 0:
                    use(4)  #: use(4) => throttled=yes
                if not i % 50:
                    use(5)  #: use(5) => throttled=yes
                if i % 50:
                    use(6)  #: use(6) => throttled=no
                else:
                    use(7)  #: use(7) => throttled=yes
                if is_main and i % 10 == 0 and use(8):  #: use(8) => throttled=yes
                    use(9)  #: use(9) => throttled=yes
                if is_main:
                    use(10)  #: use(10) => throttled=no
                if i % 100 == 0 or i == len(loader) - 1:
                    use(11)  #: use(11) => throttled=yes
                if i % 100 == 0 or is_main:
                    use(12)  #: use(12) => throttled=no
                if i % 100 != 0:
                    use(13)  #: use(13) => throttled=no
                if 0 == i % 5:
                    use(14)  #: use(14) => throttled=yes
                if self.global_step % self.cfg.log_interval == 0:
                    use(15)  #: use(15) => throttled=yes
                if global_step > 100 and global_step % args.eval_every == args.eval_every - 1:
                    use(16)  #: use(16) => throttled=yes
                if i & 127 == 0:
                    use(17)  #: use(17) => throttled=yes
                use(18) if i % 7 == 0 else use(19)  #: use(18) => throttled=yes; use(19) => throttled=no
                i % 100 == 0 and use(20)  #: use(20) => throttled=yes
                i % 100 or use(21)  #: use(21) => throttled=yes
                if divmod(i, 10)[1] == 0:
                    use(22)  #: use(22) => throttled=yes
                if i % 1 == 0:
                    use(23)  #: use(23) => throttled=no
                if x.shape[0] % 8 == 0:
                    use(24)  #: use(24) => throttled=no
                if "%d" % i == "0":
                    use(25)  #: use(25) => throttled=no
                match i % 10:
                    case 0:
                        use(26)  #: use(26) => throttled=yes
                    case _:
                        use(27)  #: use(27) => throttled=no
                if i % 10 == 0:
                    pass
                elif is_main:
                    use(28)  #: use(28) => throttled=no
                elif i % 3 == 2:
                    use(29)  #: use(29) => throttled=yes
                if (step := i * 2) % 64 == 0:
                    use(30)  #: use(30) => throttled=yes
    """,
    "first, last and chosen iterations": """
        def f(loader, model, milestones, warmup, total, left):
            for step, batch in enumerate(loader):
                model(batch)
                if step == 0:
                    use(1)  #: use(1) => throttled=yes
                if step == len(loader) - 1:
                    use(2)  #: use(2) => throttled=yes
                if step + 1 == len(loader):
                    use(3)  #: use(3) => throttled=yes
                if step in {10, 100, 1000}:
                    use(4)  #: use(4) => throttled=yes
                if step in milestones:
                    use(5)  #: use(5) => throttled=yes
                if step in left:
                    left.remove(step)
                    use(50)  #: use(50) => throttled=no
                if step < 5:
                    use(6)  #: use(6) => throttled=yes
                if step > warmup:
                    use(7)  #: use(7) => throttled=no
                if step < warmup:
                    use(8)  #: use(8) => throttled=no
                if step >= len(loader) - 1:
                    use(9)  #: use(9) => throttled=yes
                if step > warmup and step % 20 == 0:
                    use(10)  #: use(10) => throttled=yes
                if step != 0:
                    use(11)  #: use(11) => throttled=no
                else:
                    use(12)  #: use(12) => throttled=yes
                if batch in milestones:
                    use(13)  #: use(13) => throttled=yes
                kind = batch["kind"]
                if kind == "image":
                    use(14)  #: use(14) => throttled=no
                if kind in ("image", "text"):
                    use(15)  #: use(15) => throttled=no
            for number in range(total):
                model(number)
                if number == 3:
                    use(16)  #: use(16) => throttled=yes
    """,
    "a heir of a class elsewhere that trains decides on autograd itself": """
        from experiments import Experiment

        class Forecast(Experiment):
            def train(self, loader):
                for x in loader:
                    self.one_batch(x).backward()

            def one_batch(self, x):
                return use(self.model(x))  #: use(self.model(x)) => grad=on

            def score(self, x):
                return use(x)  #: use(x) => grad=unknown
    """,
    "code that settles what it tests for": """
        class Net(nn.Module):
            def forward(self, x):
                self.rescale()
                if self.mode == x.mode:
                    return x
                return use(1)  #: use(1) => throttled=no

            def rescale(self):
                if self.scaled == (not self.training):
                    return
                use(2)  #: use(2) => throttled=yes
                self.scaled = not self.training
    """,
    "code behind a return for what has been made before": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("initted", torch.zeros(1))
                self.table = self.limits = None

            def forward(self, x):
                self.prepare(x)
                self.look_up(x)
                if self.initted:
                    return x
                return use(1)  #: use(1) => throttled=no

            def prepare(self, x):
                if self.initted:
                    return
                use(2)  #: use(2) => throttled=yes
                self.initted.data.copy_(torch.ones(1))

            def look_up(self, x):
                if self.table is not None:
                    return self.table
                use(3)  #: use(3) => throttled=yes
                self.table = x.sum()
                return self.table

            def limit(self, x):
                if self.limits is None:
                    return x
                use(4)  #: use(4) => throttled=no
                self.limits = x.max()
                return x

            def advance(self, x):
                if self.done:
                    return x
                use(5)  #: use(5) => throttled=no
                self.done = x.sum() > 8
                return x

            def stop(self, x):
                if self.over:
                    return x
                use(6)  #: use(6) => throttled=no
                if x.sum() > 8:
                    self.over = True
                return x
    """,
    "what is made anew when a size changes": """
        class Net(nn.Module):
            def forward(self, x):
                for i in range(3):
                    if self.grid[i].shape[2:4] != x[i].shape[2:4]:
                        self.grid[i] = use(1)  #: use(1) => throttled=yes
                    if self.grid[i].shape[2:4] != x[i].shape[2:4]:
                        x[i] = use(2)  #: use(2) => throttled=no
                if not self.mask.size(0) == len(x):
                    self.mask = use(3)  #: use(3) => throttled=yes
                if self.mask.size(0) == len(x):
                    self.mask = use(4)  #: use(4) => throttled=no
                return x
    """,
    "a window that is full, which it is for good": """
        class Recorder:
            def run(self, model, loader):
                for x in loader:
                    model(x).sum().backward()
                    if len(self.recent) == 8:
                        self.recent = self.recent[1:]
                        use(1)  #: use(1) => throttled=no
                    if len(self.first) == 0:
                        self.first = use(2)  #: use(2) => throttled=yes
                    self.recent.append(x)
    """,
    "a forward of tensors, and one of another container": """
        class Warper:
            def forward(self, scores: torch.Tensor):
                return use(scores)  #: use(scores) => hot=forward

        class Transform:
            def forward(self, frame: TensorFrame):
                return use(frame)  #: use(frame) => hot=no
    """,
    "the state of an optimizer that is made at its first step": """
        class Nov(torch.optim.Optimizer):
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        state = self.state[p]
                        if len(state) == 0:
                            state["m"] = use(1)  #: use(1) => throttled=yes
                        if "v" not in state:
                            state["v"] = use(2)  #: use(2) => throttled=yes
                        inner = self.groups[p]["inner"]
                        if not inner:
                            inner["m"] = use(3)  #: use(3) => throttled=yes
                        fresh = self.made(p)
                        if not fresh:
                            fresh["m"] = use(4)  #: use(4) => throttled=no
                        if not state:
                            state = use(5)  #: use(5) => throttled=no
    """,
    "a flag that is set in place": """
        class Net(nn.Module):
            def forward(self, x):
                if not self.initted:
                    use(1)  #: use(1) => throttled=yes
                    self.initted.fill_(True)
                if not self.skipped:
                    use(2)  #: use(2) => throttled=no
                    x.fill_(True)
                return x
    """,
    "a flag that is spent": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fresh = self.new = self.stale = self.open = True

            def forward(self, x):
                if self.fresh:
                    use(1)  #: use(1) => throttled=yes
                    self.fresh = False
                if self.new and self.training:
                    self.start(x)  #: self.start(x) => throttled=yes
                if self.stale:
                    use(2)  #: use(2) => throttled=no
                    self.stale = False
                if self.open:
                    use(3)  #: use(3) => throttled=no
                    if x.sum() > 8:
                        self.open = False
                return x

            def start(self, x):
                self.new = False

            def step(self):
                self.stale = True
    """,
    "code behind a check that raises": """
        def f(loader, model):
            for i, x in enumerate(loader):
                g(x, i)
                if i == 0:
                    use(1)  #: use(1) => throttled=yes
                if i != 0:
                    continue
                use(2)  #: use(2) => throttled=yes

        def g(x, step):
            T = x.shape[1]
            if T != x.lengths.max_t:
                raise ValueError
            use(3)  #: use(3) => throttled=no
            if step != 0:
                raise ValueError
            use(4)  #: use(4) => throttled=no
            if step != 0:
                return
            use(5)  #: use(5) => throttled=yes
    """,
    "code above the raise that ends a function": """
        def f(loader, model):
            for x in loader:
                model(x)
                g(x)
                h(x)
                if x is None:
                    use(5)  #: use(5) => throttled=yes
                    raise ValueError

        def g(x):
            for _ in range(3):
                if use(1):  #: use(1) => throttled=no
                    return x
            raise ValueError(use(2))  #: use(2) => throttled=yes

        def h(x):
            if x:
                return x
            use(3)  #: use(3) => throttled=yes
            raise ValueError

        def k(loader, model):
            for x in loader:
                y = model(x)
                if use(4):  #: use(4) => throttled=no
                    continue
                return y
    """,
    "switches that are on unless a caller turns them off": """
        def f(loader, model, verbose=1, debug=False, loud=True, verbosity=1, verbose_mode=True):
            for x in loader:
                model(x)
                if verbose:
                    use(1)  #: use(1) => throttled=no
                if verbose > 0:
                    use(2)  #: use(2) => throttled=no
                if verbosity > 1:
                    use(3)  #: use(3) => throttled=yes
                if debug:
                    use(4)  #: use(4) => throttled=yes
                if verbosity > 0 and model.scale > 2:
                    use(5)  #: use(5) => throttled=no
    """,
    "flags computed above": """
        def f(loader, model, args, verbose, log=False):
            for i, x in enumerate(loader):
                model(x)
                speak = i % 10 == 0
                if speak:
                    use(1)  #: use(1) => throttled=yes
                quiet = i % 10 != 0
                if not quiet:
                    use(2)  #: use(2) => throttled=yes
                if quiet:
                    use(3)  #: use(3) => throttled=no
                report = False
                if i % 25 == 0:
                    report = True
                if report:
                    use(4)  #: use(4) => throttled=yes
                both = speak and args.rank == 0
                if both:
                    use(5)  #: use(5) => throttled=yes
                if args.debug:
                    use(6)  #: use(6) => throttled=yes
                if verbose:
                    use(7)  #: use(7) => throttled=yes
                if verbose > 1:
                    use(8)  #: use(8) => throttled=yes
                if args["verbose"]:
                    use(9)  #: use(9) => throttled=yes
                if log:
                    use(10)  #: use(10) => throttled=yes
                if args.use_wandb:
                    use(11)  #: use(11) => throttled=no
                if args.amp:
                    use(12)  #: use(12) => throttled=no
                if should_log(i):
                    use(13)  #: use(13) => throttled=yes
                if every(i):
                    use(14)  #: use(14) => throttled=yes
                if usual(i):
                    use(15)  #: use(15) => throttled=no


        def every(step):
            '''Whether to report.'''
            return step % 10 == 0


        def usual(step):
            return step > 10
    """,
    "early exits": """
        import sys


        def f(loader, model, log_every, best):
            for i, x in enumerate(loader):
                loss = model(x)
                if x is None:
                    continue
                use(1)  #: use(1) => throttled=no
                if not isfinite(loss):
                    use(2)  #: use(2) => throttled=yes
                    sys.exit(1)
                if loss != loss:
                    raise ValueError(use(3))  #: use(3) => throttled=yes
                if loss > best + 10:
                    use(4)  #: use(4) => throttled=yes
                    break
                if i < log_every:
                    use(5)  #: use(5) => throttled=yes
                    return
                if i % log_every:
                    use(6)  #: use(6) => throttled=no
                    continue
                use(7)  #: use(7) => throttled=yes


        def g(loader, model, done):
            for i, x in enumerate(loader):
                loss = model(x)
                if done:
                    continue
                elif i % 10 != 0:
                    continue
                use(1)  #: use(1) => throttled=yes


        def h(loader, model):
            for i, x in enumerate(loader):
                loss = model(x)
                try:
                    use(1)  #: use(1) => throttled=no
                except ValueError:
                    use(2)  #: use(2) => throttled=yes
                else:
                    use(3)  #: use(3) => throttled=no
                finally:
                    use(4)  #: use(4) => throttled=no
                assert x, use(5)  #: use(5) => throttled=yes
                if i % 10 == 0:
                    pass
                else:
                    continue
                use(6)  #: use(6) => throttled=yes


        def k(loader, model):
            for x in loader:
                use(1)  #: use(1) => throttled=yes
                break
            while True:
                try:
                    use(2)  #: use(2) => throttled=yes
                    break
                except OSError:
                    pass
    """,
    "clocks, counters, records, chance": """
        import random
        import time
        from time import monotonic


        def f(loader, model, interval, best_loss, patience):
            last = time.time()
            since = 0
            seen = 0
            for x in loader:
                loss = model(x)
                if time.time() - last > interval:
                    use(1)  #: use(1) => throttled=yes
                    last = time.time()
                since += 1
                if since >= interval:
                    use(2)  #: use(2) => throttled=yes
                    since = 0
                now = monotonic()
                if now - last > 30:
                    use(3)  #: use(3) => throttled=yes
                if loss < best_loss:
                    use(4)  #: use(4) => throttled=yes
                    best_loss = loss
                if random.random() < 0.01:
                    use(5)  #: use(5) => throttled=yes
                if random.random() < 0.5:
                    use(6)  #: use(6) => throttled=no
                if loss > 3:
                    use(7)  #: use(7) => throttled=no
                    loss = 3 * loss
                seen += len(x)
                if seen > interval:
                    use(8)  #: use(8) => throttled=yes
                    seen -= interval
    """,
    "frequencies of progress bars and of Lightning": """
        import lightning as L
        from tqdm import tqdm


        def f(loader, model):
            bar = tqdm(loader, miniters=100)
            for i, x in enumerate(bar):
                model(x)
                if i % bar.miniters == 0:
                    use(1)  #: use(1) => throttled=yes
                if bar.n % 50 == 0:
                    use(2)  #: use(2) => throttled=yes


        class Lit(L.LightningModule):
            def training_step(self, batch, batch_idx):
                if batch_idx % self.trainer.log_every_n_steps == 0:
                    use(3)  #: use(3) => throttled=yes
                if self.global_step % self.hparams.log_freq == 0 and self.trainer.is_global_zero:
                    use(4)  #: use(4) => throttled=yes
                use(5)  #: use(5) => throttled=no hot=training_step
                return self(batch)

            def on_train_batch_end(self, outputs, batch, batch_idx):
                if (batch_idx + 1) % self.trainer.log_every_n_steps:
                    return
                use(6)  #: use(6) => throttled=yes
    """,
    "metric helpers and reports": """
        import torch
        from torch import nn


        class AverageMeter:
            def __init__(self):
                self.total, self.count = 0, 0

            def update(self, value, n=1):
                self.total += value * n
                self.count += n
                use(1)  #: use(1) => hot=x via=update

            @property
            def average(self):
                return use(self.total)  #: use(self.total) => hot=x via=average


        def accuracy(output, target):
            use(2)  #: use(2) => hot=x via=accuracy
            return (output.argmax(1) == target).float().mean()


        def reduce_dict(values):
            return {k: use(v) for k, v in values.items()}  #: use(v) => hot=x via=reduce_dict


        def report(writer, step, **values):
            def send(name, value):
                use(3)  #: use(3) => hot=x via=report,send
                writer.add_scalar(name, value, step)

            for name, value in values.items():
                send(name, value)


        def train(loader, writer, device):
            model = nn.Linear(3, 1).to(device)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            meter = AverageMeter()
            for x, y in loader:
                out = model(x.to(device))
                loss = (out - y.to(device)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                meter.update(loss)
                reduce_dict({"loss": loss})
                report(writer, 0, accuracy=accuracy(out, y), average=meter.average)
    """,
    "caches, lazy attributes, host-only branches": """
        import functools
        import torch
        from torch import nn

        CACHE = {}


        @functools.lru_cache(maxsize=None)
        def table(size):
            return use(size)  #: use(size) => hot=no


        class Net(nn.Module):
            def forward(self, x, mask=None):
                key = (x.dtype, x.device)
                if key not in CACHE:
                    CACHE[key] = use(1)  #: use(1) => throttled=yes hot=no
                if self.buffer is None or self.buffer.shape != x.shape:
                    self.buffer = use(2)  #: use(2) => throttled=yes hot=no
                if not hasattr(self, "grid"):
                    self.grid = use(3)  #: use(3) => throttled=yes hot=no
                if not self.ready:
                    use(4)  #: use(4) => throttled=yes hot=no
                    self.ready = True
                if mask is None:
                    mask = use(5)  #: use(5) => throttled=no hot=forward
                if not self.training:
                    use(6)  #: use(6) => throttled=no hot=forward
                if x.device.type == "cpu":
                    use(7)  #: use(7) => throttled=yes hot=no
                if x.is_cuda:
                    use(8)  #: use(8) => throttled=no hot=forward
                else:
                    use(9)  #: use(9) => throttled=yes hot=no
                if not torch.cuda.is_available():
                    use(10)  #: use(10) => throttled=yes hot=no
                table(3)
                if x.device.type != "cpu" or x.numel() == 0:
                    return x
                return use(11)  #: use(11) => throttled=yes hot=no
    """,
    "throttled loops in loops": """
        import torch
        from torch import nn


        def train(loader, epochs):
            model = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(epochs):
                for step, (x, y) in enumerate(loader):
                    loss = model(x).sum()
                    loss.backward()
                    optimizer.step()
                    if step % 100 == 0:
                        for name, p in model.named_parameters():
                            use(p.grad.norm())  #: use(p.grad.norm()) => throttled=yes hot=no
                        norms = [
                            p.grad.norm().item()  #: p.grad.norm().item() => throttled=yes hot=no
                            for p in model.parameters()
                        ]
                    for p in model.parameters():
                        use(p)  #: use(p) => throttled=no hot=step
                if epoch % 10 == 0:
                    for x, y in loader:
                        out = model(x)
                        use(out)  #: use(out) => throttled=no hot=x
    """,
    "epochs are not steps": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader


        def main(data):
            device = torch.device("cuda")
            model = nn.Linear(3, 1).to(device)
            optimizer = torch.optim.Adam(model.parameters())
            loader = DataLoader(data, batch_size=4)
            noise = torch.randn(8, 3, device=device)
            total = torch.zeros((), device=device)
            use(0)  #: use(0) => hot=no
            for epoch in range(10):
                use(1)  #: use(1) => hot=no
                for x, y in loader:
                    use(2)  #: use(2) => hot=x
                    optimizer.zero_grad()
                    loss = model(x).sum()
                    loss.backward()
                    optimizer.step()
                    total += loss
                use(3)  #: use(3) => hot=no
                picture = model(noise)  #: model(noise) => hot=no
                print(total.item())  #: total.item() => hot=no
            use(4)  #: use(4) => hot=no


        def full_batch(x, y):
            model = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(1000):
                loss = (model(x) - y).pow(2).mean()
                loss.backward()
                optimizer.step()
                print(loss.item())  #: loss.item() => hot=epoch


        def critic(loader, n_critic):
            net_d, net_g = nn.Linear(1, 1), nn.Linear(1, 1)
            opt_g = torch.optim.Adam(net_g.parameters())
            opt_d = torch.optim.Adam(net_d.parameters())
            for step, real in enumerate(loader):
                for _ in range(n_critic):
                    loss_d = net_d(real).mean()
                    loss_d.backward()
                    opt_d.step()
                    use(loss_d)  #: use(loss_d) => hot=_
                loss_g = net_d(net_g(real)).mean()
                loss_g.backward()
                opt_g.step()
                use(loss_g)  #: use(loss_g) => hot=step


        def accumulate(batches, count):
            model = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            while True:
                for micro in range(count):
                    loss = model(next(batches)).sum()
                    loss.backward()
                    use(1)  #: use(1) => hot=micro
                optimizer.step()
                use(2)  #: use(2) => hot=while


        def ppo(env, updates, horizon, minibatches):
            agent = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.Adam(agent.parameters())
            for update in range(updates):
                for t in range(horizon):
                    action = agent(env)
                    use(action)  #: use(action) => hot=t
                value = agent(env)
                for batch in minibatches:
                    loss = agent(batch).sum()
                    loss.backward()
                    optimizer.step()
                    use(loss)  #: use(loss) => hot=batch
                use(value)  #: use(value) => hot=no


        def search(rates, data):
            for rate in rates:
                score = run(rate, data)
                use(score)  #: use(score) => hot=no


        def run(rate, data):
            model = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.Adam(model.parameters(), lr=rate)
            loss = model(data).sum()
            loss.backward()
            optimizer.step()
            return use(loss)  #: use(loss) => hot=no


        def recurrent(loader, length):
            cell = nn.LSTMCell(3, 3).cuda()
            for batch in loader:
                for t in range(length):
                    h, c = cell(batch)
                use(h)  #: use(h) => hot=batch
    """,
    "a loop over several loaders": """
        def evaluate(model, loader):
            use(0)  #: use(0) => hot=no
            for x in loader:
                use(1)  #: use(1) => hot=x
                model(x)


        def check(model, loaders, config):
            for split in config["eval_dataloaders"]:
                use(2)  #: use(2) => hot=no
                evaluate(model, split)
            for name, loader in loaders.items():
                use(3)  #: use(3) => hot=no
                for x in loader:
                    use(4)  #: use(4) => hot=x
                    model(x)
            for x, y in zip(*loaders):
                use(5)  #: use(5) => hot=x
                model(x)
    """,
    "one step of training, both ways": """
        def forward_backward_no_pipelining(forward_step, batches, model, count):
            total = 0
            for _ in range(count - 1):
                forward_step(next(batches), model).backward()
            loss = forward_step(next(batches), model)
            loss.backward()
            return use(total)  #: use(total) => hot=forward_backward_no_pipelining

        def forward_backward_pipelining(forward_step, batches, model, count):
            total = 0
            for _ in range(count):
                forward_step(next(batches), model).backward()
            return use(total)  #: use(total) => hot=forward_backward_pipelining

        def forward_backward_names():
            return use(1)  #: use(1) => hot=no
    """,
    "what a server asks of parts that have no annotations": """
        from torch import nn

        class FlowScheduler:
            def step(self, model_output, timestep=None, sample=None):
                return use(sample)  #: use(sample) => hot=step

            def set_timesteps(self, timesteps):
                return use(timesteps)  #: use(timesteps) => hot=no

        class WarmupScheduler:
            def step(self, epoch=None):
                return use(epoch)  #: use(epoch) => hot=no

        class PictureModel(nn.Module):
            def get_image_feature(self, items):
                return use(items)  #: use(items) => hot=get_image_feature

            def get_image_size(self):
                return use(2)  #: use(2) => hot=no

        class PictureProcessor:
            def get_image_features(self, items):
                return use(items)  #: use(items) => hot=no
    """,
    "not hot at all": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader


        def statistics(data):
            loader = DataLoader(data)
            labels = []
            for x, y in loader:
                labels.append(y.numpy())  #: y.numpy() => hot=no
            return labels


        def build(sizes):
            layers = []
            for size in sizes:
                layers.append(nn.Linear(size, size))  #: nn.Linear(size, size) => hot=no
            return nn.Sequential(*layers)


        def first(loader):
            model = nn.Linear(1, 1).cuda()
            for x in loader:
                out = model(x)  #: model(x) => hot=no
                break
            return out


        def report(model):
            for name, p in model.named_parameters():
                print(name, p.numel())  #: p.numel() => hot=no
    """,
    "functions that are handed on": """
        import torch
        from torch import nn

        model = nn.Linear(3, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


        def share(out, y):
            return (out == y).float().mean()  #: (out == y).float().mean() => hot=x via=run,metric


        def total(out, y):
            return out.sum()  #: out.sum() => hot=x via=summed


        def mean(out, y):
            return out.mean()  #: out.mean() => hot=x via=metric


        def make_report():
            def report(loss):
                use(loss)  #: use(loss) => hot=x via=tell

            return report


        def spare(out, y):
            return out.min()  #: out.min() => hot=no


        class Runner:
            def __init__(self, metric):
                self.metric = metric

            def fit(self, loader):
                for x in loader:
                    model(x).sum().backward()
                    self.metric(x, x)


        def run(metric, out, y):
            return metric(out, y)


        def epoch(loader, summed=total):
            tell = make_report()
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                run(share, x, x)
                summed(x, x)
                tell(loss)


        Runner(mean).fit([])
        epoch([])
        list(map(print, [spare]))
    """,
    "helpers called from a hot loop": """
        import torch
        from torch import nn

        model = nn.Linear(3, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


        def accuracy(out, y):
            return share(out.argmax(1) == y)


        def share(hits):
            return hits.float().mean().item()  #: hits.float().mean().item() => hot=x via=accuracy,share


        def step(x, y):
            out = model(x)  #: model(x) => hot=x via=step
            loss = out.sum()
            loss.backward()
            optimizer.step()
            if x.sum() > 0:
                use(x)  #: use(x) => hot=x via=step
            return loss


        def rarely(x):
            use(x)  #: use(x) => hot=no via=no


        def unused(x):
            use(x)  #: use(x) => hot=no


        def at_the_end(x):
            use(x)  #: use(x) => hot=no


        def log(i, loss):
            if i % 10:
                return
            print(loss.item())  #: loss.item() => hot=no


        def train(loader):
            for i, (x, y) in enumerate(loader):
                pass
            for x, y in loader:
                loss = step(x, y)
                accuracy(model(x), y)
                log(y, loss)
                if y % 100 == 0:
                    rarely(x)
            at_the_end(x)


        def fit(loader, epochs):
            for epoch in range(epochs):
                train(loader)
                use(epoch)  #: use(epoch) => hot=no
    """,
    "methods, properties, lambdas, decorators, generators": """
        import torch
        from torch import nn


        def timed(function):
            def wrapper(*args):
                torch.cuda.synchronize()  #: torch.cuda.synchronize() => hot=batch
                return function(*args)
            return wrapper


        def batches(loader):
            use(1)  #: use(1) => hot=no
            for batch in loader:
                yield batch.cuda()  #: batch.cuda() => hot=batch via=batches


        class Trainer:
            def __init__(self, loader):
                self.model = nn.Linear(3, 1).cuda()
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                self.loader = loader
                self.total = torch.zeros(()).cuda()
                use(self)  #: use(self) => hot=no

            @property
            def mean(self):
                return self.total.item()  #: self.total.item() => hot=batch via=mean

            @property
            def never(self):
                return self.total.item()  #: self.total.item() => hot=no

            @timed
            def step(self, batch):
                loss = self.model(batch).sum()
                loss.backward()
                self.optimizer.step()
                return loss

            def fit(self):
                show = lambda t: t.item()  #: t.item() => hot=batch
                for batch in batches(self.loader):
                    loss = self.step(batch)
                    show(loss)
                    print(self.mean)
                    values = list(map(lambda t: t.item(), [loss]))  #: t.item() => hot=batch
                    parts = [p.item() for p in loss]  #: p.item() => hot=batch
                    any(p.item() for p in loss)  #: p.item() => hot=batch

                    def show_again():
                        return loss.item()  #: loss.item() => hot=batch via=show_again

                    show_again()


        class Loud(Trainer):
            def step(self, batch):
                use(batch)  #: use(batch) => hot=batch via=step
                return super().step(batch)
    """,
    "rounds of an optimization inside of rounds": """
        import torch

        device = torch.device("cuda")


        def fit(net, loader, optimizer, rounds):
            for x in loader:
                use(0)  #: use(0) => hot=x
                for i in range(rounds):
                    optimizer.zero_grad()
                    net(x).mean().backward()
                    optimizer.step()
                    use(1)  #: use(1) => hot=i
                    if i % 20 == 0:
                        use(2)  #: use(2) => hot=no
    """,
    "forward and what it calls": """
        import torch
        from torch import nn


        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(1, 1)])
                use(0)  #: use(0) => hot=no

            def forward(self, x):
                use(1)  #: use(1) => hot=forward
                for i, layer in enumerate(self.layers):
                    x = layer(x)
                    if i == 0:
                        use(2)  #: use(2) => hot=forward
                if not self.training:
                    use(3)  #: use(3) => hot=forward
                if torch.jit.is_scripting():
                    use(4)  #: use(4) => hot=no
                return self.merge(helper(x))

            def merge(self, x):
                return use(x)  #: use(x) => hot=forward via=merge

            def export(self, x):
                return use(x)  #: use(x) => hot=no


        def helper(x):
            return use(x)  #: use(x) => hot=forward via=helper


        class Deep(Block):
            def forward(self, x):
                return use(x)  #: use(x) => hot=forward


        class Plain:
            def forward(self, x):
                return use(x)  #: use(x) => hot=no


        class Swish(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return use(x)  #: use(x) => hot=forward grad=off phase=forward

            @staticmethod
            def backward(ctx, g):
                return use(g)  #: use(g) => hot=backward grad=off


        class Lion(torch.optim.Optimizer):
            def step(self, closure=None):
                use(1)  #: use(1) => hot=step phase=training


        def hook(module, inputs, output):
            use(output)  #: use(output) => hot=hook


        Block().register_forward_hook(hook)
    """,
    "a trainer that is a module": """
        import torch


        class Trainer(torch.nn.Module):
            def __init__(self, model, optimizer, loader):
                super().__init__()
                self.model, self.optimizer, self.loader = model, optimizer, loader
                self.register_buffer("step", torch.tensor(0))

            def forward(self):
                use(1)  #: use(1) => hot=no phase=training
                for x in self.loader:
                    use(2)  #: use(2) => hot=x phase=training
                    self.model(x).mean().backward()
                    self.optimizer.step()
    """,
    "closures of an optimizer": """
        import torch
        from torch import nn


        def fit(x, steps):
            model = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(steps):
                def closure():
                    loss = model(x).sum()
                    loss.backward()
                    use(loss)  #: use(loss) => hot=step via=step
                    return loss
                optimizer.step(closure)


        def fit_lbfgs(x, steps):
            model = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.LBFGS(model.parameters())
            for step in range(steps):
                def closure():
                    loss = model(x).sum()
                    loss.backward()
                    use(loss)  #: use(loss) => hot=no
                    return loss
                optimizer.step(closure)
    """,
    "frameworks call the hooks": """
        import lightning as L
        import pytorch_lightning as pl
        import transformers
        from torch import nn


        class Lit(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                use(1)  #: use(1) => hot=training_step phase=training grad=on
                if batch_idx % 50 == 0:
                    use(2)  #: use(2) => hot=no
                if self.trainer.sanity_checking:
                    use(3)  #: use(3) => hot=no
                return self.shared(batch)

            def validation_step(self, batch, batch_idx):
                use(1)  #: use(1) => hot=validation_step phase=evaluation grad=off
                return self.only_validation(batch)

            def only_validation(self, batch):
                return use(batch)  #: use(batch) => hot=validation_step phase=evaluation grad=off

            def shared(self, batch):
                return use(batch)  #: use(batch) => hot=training_step phase=training grad=on via=shared

            def predict_step(self, batch):
                return use(batch)  #: use(batch) => hot=predict_step phase=evaluation grad=off

            def on_train_epoch_end(self):
                use(1)  #: use(1) => hot=no

            def on_validation_epoch_end(self):
                use(1)  #: use(1) => hot=no phase=evaluation grad=off

            def on_train_batch_end(self, outputs, batch, batch_idx):
                use(1)  #: use(1) => hot=on_train_batch_end

            def configure_optimizers(self):
                use(1)  #: use(1) => hot=no phase=setup


        class Lit2(L.LightningModule):
            def test_step(self, batch):
                use(1)  #: use(1) => hot=test_step phase=evaluation grad=off


        class Custom(transformers.Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):
                use(1)  #: use(1) => hot=compute_loss grad=unknown

            def prediction_step(self, model, inputs):
                use(1)  #: use(1) => hot=prediction_step grad=unknown phase=evaluation

            def evaluate(self):
                use(1)  #: use(1) => hot=no grad=unknown


        class Loud(transformers.TrainerCallback):
            def on_step_end(self, args, state, control):
                use(1)  #: use(1) => hot=on_step_end

            def on_epoch_end(self, args, state, control):
                use(1)  #: use(1) => hot=no
    """,
    "tensor work without modules": """
        import torch

        device = torch.device("cuda")
        x = torch.randn(64, 1000, device=device)
        w = torch.randn(1000, 10, device=device)
        for t in range(500):
            y = x.mm(w)
            loss = y.pow(2).sum()
            print(loss.item())  #: loss.item() => hot=t
            if t % 100 == 99:
                print(loss.item())  #: loss.item() => hot=no
        correct = torch.zeros(10, device=device)
        for i in range(10):
            print(correct[i].item())  #: correct[i].item() => hot=no


        def report(model):
            model = torch.nn.Linear(1, 1).cuda()
            for name, p in model.named_parameters():
                print(name, p.norm().item())  #: p.norm().item() => hot=no


        def evaluate(model, loader, classes):
            hits = torch.zeros(10, device=device)
            for x in loader:
                hits += model(x).sum()
            for i in range(classes):
                print(hits[i].mean().item())  #: hits[i].mean().item() => hot=no
    """,
    "a helper of training and validation that is called as if it only served": """
        import torch

        class Solver:
            def fit(self, loader):
                for batch in loader:
                    self.optimizer.zero_grad()
                    self.criterion(self._inference(batch)).backward()
                    self.optimizer.step()

            def validation(self, loader):
                self.model.eval()
                with torch.no_grad():
                    return sum(self.criterion(self._inference(batch)).item() for batch in loader)

            def _inference(self, batch):
                return self._single_model_inference(batch)

            def _single_model_inference(self, batch):
                return use(batch)  #: use(batch) => phase=unknown
    """,
    "training every so many steps": """
        import torch
        from torch import nn

        def train(critic: nn.Module, actor: nn.Module, loader, optimizers, delay, every):
            for step, x in enumerate(loader):
                critic(x.cuda()).mean().backward()
                optimizers[0].step()
                if step % delay == 0:
                    loss = actor(x.cuda()).mean()
                    loss.backward()
                    optimizers[1].step()
                    use(1)  #: use(1) => hot=step
                if step % 16 == 0:
                    actor(x.cuda()).square().mean().backward()
                    use(2)  #: use(2) => hot=no
                if step % every == 0:
                    use(3)  #: use(3) => hot=no
    """,
    "an agent that learns from what it has remembered": """
        import torch
        from torch import nn

        class Learner:
            def __init__(self, actor: nn.Module, env, optimizer, every=5000, delay=2):
                self.actor, self.env, self.optimizer = actor.cuda(), env, optimizer
                self.every, self.delay = every, delay

            def learn(self, memories, delay):
                use(memories)  #: use(memories) => hot=no
                for states in memories:
                    self.actor(states.cuda()).mean().backward()
                    self.optimizer.step()

            def hurry(self, states):
                use(states)  #: use(states) => hot=step
                self.actor(states.cuda()).mean().backward()
                self.optimizer.step()

            def play(self, state, memories):
                for step in range(100000):
                    state = self.env.step(self.actor(state))
                    memories.append(state)
                    if step % self.every == 0:
                        self.learn(memories, 1)
                    if step % self.delay == 0:
                        self.hurry(state)
    """,
    "a few batches that were chosen": """
        import torch
        from torch import nn

        def score(model: nn.Module, loader, chosen, indices):
            for batch in loader:
                show(model(batch.cuda()), [batch.index], chosen)

        def show(output, indices, chosen):
            for i, batch_index in enumerate(indices):
                if batch_index in chosen:
                    use(1)  #: use(1) => hot=no
                use(2)  #: use(2) => hot=batch
    """,
    "phases of a script": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, Dataset


        class Data(Dataset):
            def __init__(self):
                use(0)  #: use(0) => phase=setup

            def __getitem__(self, i):
                return self.load(i)  #: self.load(i) => phase=dataset

            def load(self, i):
                return use(i)  #: use(i) => phase=dataset


        def collate(items):
            return use(items)  #: use(items) => phase=dataset


        def stack(items):
            return use(items)  #: use(items) => phase=dataset


        def collate_trimmed(batch):
            samples = batch
            longest = max(len(sample["x"]) for sample in samples)
            return use(longest)  #: use(longest) => phase=dataset


        def data_collator(outputs, length):
            padding = length - outputs.shape[1]
            return use(padding)  #: use(padding) => phase=unknown


        def collate_inputs(batch):
            longest = batch["mask"].sum(1).max()
            return use(longest)  #: use(longest) => phase=unknown


        def make_collator():
            return use(1)  #: use(1) => phase=unknown


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 1)  #: nn.Linear(3, 1) => phase=setup

                self.fc.eval()
                self.size = self.fc(1)  #: self.fc(1) => phase=setup

            def forward(self, x):
                if self.training:
                    return use(x)  #: use(x) => phase=forward
                return squash(self.fc(x))  #: self.fc(x) => phase=forward


        def squash(x):
            return use(x)  #: use(x) => phase=forward


        loader = DataLoader(Data(), collate_fn=stack)  #: loader => phase=setup
        model = Net().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


        def train(loader):
            model.train()
            for x in loader:
                loss = compute(x)
                loss.backward()  #: loss.backward() => phase=training
                optimizer.step()
                metric(x)


        def compute(x):
            return model(x).sum()  #: model(x) => phase=training


        def metric(x):
            return use(x)  #: use(x) => phase=unknown


        def validate(loader):
            for x in loader:
                metric(model(x))  #: model(x) => phase=evaluation


        def check(loader):
            model.eval()
            out = model(next(loader))  #: model(next(loader)) => phase=evaluation
            model.train()
            return model(out)  #: model(out) => phase=training


        def test(model, val_loader):
            for x in val_loader:
                model(x)  #: model(x) => phase=evaluation


        def test_shapes():
            model = Net()
            assert model(1)  #: model(1) => phase=unknown


        def probe(val_loader, loaders, test_layouts, loader_test):
            for x in val_loader:
                use(x)  #: use(x) => phase=evaluation
            for x in loaders["val"]:
                use(x)  #: use(x) => phase=evaluation
            for x in tqdm(loader_test):
                use(x)  #: use(x) => phase=evaluation
            for layout in test_layouts:
                use(layout)  #: use(layout) => phase=unknown


        def main(epochs):
            for epoch in range(epochs):
                train(loader)
                validate(loader)


        if __name__ == "__main__":
            main(3)
    """,
    "one loop with both phases": """
        import torch
        from torch import nn


        def run(train_loader, val_loader, epochs):
            model = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(epochs):
                model.train()
                for x, y in train_loader:
                    loss = model(x).sum()  #: model(x) => phase=training
                    loss.backward()
                    optimizer.step()
                model.eval()
                for x, y in val_loader:
                    out = model(x)  #: model(x) => phase=evaluation
                use(1)  #: use(1) => phase=evaluation


        def distil(loader, teacher, student):
            optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
            teacher.eval()
            for x in loader:
                target = teacher(x)  #: teacher(x) => phase=training
                loss = (student(x) - target).sum()
                loss.backward()
                optimizer.step()


        def phases(loaders):
            model = nn.Linear(3, 1).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for phase in ["train", "val"]:
                if phase == "train":
                    model.train()
                else:
                    model.eval()
                for x in loaders[phase]:
                    with torch.set_grad_enabled(phase == "train"):
                        loss = model(x).sum()  #: model(x) => phase=unknown grad=unknown
                        if phase == "train":
                            loss.backward()  #: loss.backward() => phase=training
                            optimizer.step()
                        else:
                            use(loss)  #: use(loss) => phase=evaluation
                    use(2)  #: use(2) => phase=unknown grad=on


        def run_epoch(loader, model, optimizer=None):
            for x in loader:
                loss = model(x).sum()  #: model(x) => phase=unknown
                if optimizer is not None:
                    loss.backward()
                    optimizer.step()  #: optimizer.step() => phase=training


        def sample(model, steps):
            x = torch.randn(1)
            for t in range(steps):
                x = model(x)  #: model(x) => phase=evaluation
            return x


        class Decoder(nn.Module):
            def forward(self, x):
                return self.predict_masks(x)

            def predict_masks(self, x):
                return use(x)  #: use(x) => phase=forward

            def predict(self, x):
                return self(x)  #: self(x) => phase=evaluation

            def decode(self, x):
                return use(x)  #: use(x) => phase=unknown

            def infer_output_dim(self, x):
                return use(x)  #: use(x) => phase=unknown


        def preview(loader, step):
            generator = nn.Linear(1, 1).cuda()
            optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
            for x in loader:
                generator(x).sum().backward()
                optimizer.step()
                generator.eval()
                picture = generator(x)  #: generator(x) => phase=evaluation
                generator.train()
                use(x)  #: use(x) => phase=training


        def switch(model, training):
            model.train(training)
            use(model)  #: use(model) => phase=unknown
            model.train(False)
            use(model)  #: use(model) => phase=evaluation
    """,
    "inference of a class": """
        import torch
        from torch import nn


        class Recogniser:
            def __init__(self):
                self.model = nn.Linear(1, 1).cuda()

            def __call__(self, x):
                return self.model(x)  #: self.model(x) => phase=evaluation grad=off


        @torch.no_grad()
        def inference(items):
            recognise = Recogniser()
            for item in items:
                out = recognise(item)
                use(out)  #: use(out) => phase=evaluation hot=item


        inference([])
    """,
    "scripts without functions": """
        import torch
        from torch import nn

        model = nn.Linear(3, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        use(1)  #: use(1) => phase=setup hot=no
        for epoch in range(3):
            for x in train_loader:
                loss = model(x).sum()  #: model(x) => phase=training hot=x
                loss.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for x in test_loader:
                    out = model(x)  #: model(x) => phase=evaluation grad=off hot=x
        model.eval()
        result = model(x)  #: model(x) => phase=evaluation grad=on hot=no
    """,
    "grad off by decorators": """
        import functools
        import torch
        from torch import inference_mode as frozen, no_grad
        import torch as th
        from torch.autograd import no_grad as off


        @torch.no_grad()
        def a(x):
            return use(x)  #: use(x) => grad=off


        @no_grad
        def b(x):
            return use(x)  #: use(x) => grad=off


        @frozen()
        def c(x):
            return use(x)  #: use(x) => grad=off


        @off()
        def d(x):
            with th.enable_grad():
                use(x)  #: use(x) => grad=on
            return use(2)  #: use(2) => grad=off


        @th.autograd.grad_mode.no_grad()
        def e(x, y=use(0)):  #: use(0) => grad=on
            return use(x)  #: use(x) => grad=off


        @torch.set_grad_enabled(False)
        def f(x):
            return use(x)  #: use(x) => grad=off


        @functools.lru_cache
        @torch.inference_mode(mode=True)
        def g(x):
            return use(x)  #: use(x) => grad=off


        def evaluating(function):
            @functools.wraps(function)
            def wrapper(*args):
                with torch.no_grad():
                    return function(*args)
            return wrapper


        @evaluating
        def h(x):
            return use(x)  #: use(x) => grad=off


        def k(x):
            return use(x)  #: use(x) => grad=off


        k = torch.no_grad()(k)
        quiet = torch.no_grad()


        @quiet
        def l(x):
            return use(x)  #: use(x) => grad=off


        @smart_inference_mode()
        def m(x):
            return use(x)  #: use(x) => grad=unknown


        @torch.enable_grad()
        def n(x):
            return use(x)  #: use(x) => grad=on


        @functools.lru_cache(None)
        def o(x):
            return use(x)  #: use(x) => grad=on


        @torch.no_grad()
        class Whole:
            def run(self, x):
                return use(x)  #: use(x) => grad=on


        class Model:
            @staticmethod
            @torch.no_grad()
            def p(x):
                return use(x)  #: use(x) => grad=off

            @torch.no_grad()
            def q(self, x):
                return self.r(x)

            def r(self, x):
                return use(x)  #: use(x) => grad=off
    """,
    "grad off through callers, heirs and choices": """
        import contextlib
        import functools
        import torch


        class Quiet:
            def evaluate(self, loader):
                with torch.no_grad():
                    return self.loop(loader)


        class Heir(Quiet):
            def loop(self, loader):
                return use(loader)  #: use(loader) => grad=off


        def quietly(function):
            @functools.wraps(function)
            def inner(*args, **kwargs):
                with torch.no_grad():
                    return function(*args, **kwargs)
            return inner


        @quietly
        def evaluate(model, loader):
            return use(loader)  #: use(loader) => grad=off


        def either(model, loader, train):
            context = contextlib.nullcontext() if train else torch.no_grad()
            with context:
                return use(loader)  #: use(loader) => grad=unknown


        def run(model, loader, mode):
            torch.set_grad_enabled(mode == "train")
            for x in loader:
                use(x)  #: use(x) => grad=unknown


        def phases(model, loaders):
            for phase in ["train", "val"]:
                for x in loaders[phase]:
                    use(x)  #: use(x) => grad=on
                    with torch.set_grad_enabled(phase == "train"):
                        use(2)  #: use(2) => grad=unknown
    """,
    "grad off by contexts": """
        import contextlib
        import torch


        def f(x, training, amp):
            use(0)  #: use(0) => grad=on
            with torch.no_grad():
                use(1)  #: use(1) => grad=off
                with torch.enable_grad():
                    use(2)  #: use(2) => grad=on
                [use(3) for _ in x]  #: use(3) => grad=off
            with torch.autocast("cuda"), torch.inference_mode():
                use(4)  #: use(4) => grad=off
            with torch.no_grad(), open(use(5)) as file:  #: use(5) => grad=off
                use(6)  #: use(6) => grad=off
            with torch.set_grad_enabled(training):
                use(7)  #: use(7) => grad=unknown
            with torch.set_grad_enabled(False):
                use(8)  #: use(8) => grad=off
            with torch.autocast("cuda"):
                use(9)  #: use(9) => grad=on
            context = torch.no_grad()
            with context:
                use(10)  #: use(10) => grad=off
            either = torch.enable_grad() if training else torch.no_grad()
            with either:
                use(11)  #: use(11) => grad=unknown
            with contextlib.nullcontext():
                use(12)  #: use(12) => grad=on
            with torch.no_grad() if training else contextlib.nullcontext():
                use(13)  #: use(13) => grad=unknown
            with contextlib.ExitStack() as stack:
                use(14)  #: use(14) => grad=on
                stack.enter_context(torch.no_grad())
                use(15)  #: use(15) => grad=off
            use(16)  #: use(16) => grad=on
            with quiet():
                use(17)  #: use(17) => grad=off
            with choose(amp):
                use(18)  #: use(18) => grad=off
            with imported_no_grad():
                use(19)  #: use(19) => grad=unknown
            with Profiler():
                use(20)  #: use(20) => grad=on
            with Meddler():
                use(21)  #: use(21) => grad=unknown
            with torch.autograd.set_grad_enabled(True):
                use(22)  #: use(22) => grad=on
            with (
                torch.no_grad(),
                torch.autocast("cuda"),
            ):
                use(23)  #: use(23) => grad=off


        @contextlib.contextmanager
        def quiet():
            with torch.no_grad():
                yield


        def choose(amp):
            return torch.no_grad()


        class Profiler:
            def __enter__(self):
                return self


        class Meddler:
            def __enter__(self):
                torch.set_grad_enabled(False)


        class Holder:
            def __init__(self):
                self.context = torch.no_grad()

            def run(self, x):
                with self.context:
                    return use(x)  #: use(x) => grad=off
    """,
    "grad mode by statements": """
        import torch


        def f(x, flag):
            use(0)  #: use(0) => grad=on
            torch.set_grad_enabled(False)
            use(1)  #: use(1) => grad=off
            for y in x:
                use(2)  #: use(2) => grad=off
            torch.set_grad_enabled(True)
            use(3)  #: use(3) => grad=on
            with torch.no_grad():
                use(4)  #: use(4) => grad=off


        def g(x, flag):
            if flag:
                torch.set_grad_enabled(False)
                use(0)  #: use(0) => grad=off
            use(1)  #: use(1) => grad=unknown


        def h(x):
            before = torch.is_grad_enabled()
            torch.set_grad_enabled(False)
            use(0)  #: use(0) => grad=off
            torch.set_grad_enabled(before)
            use(1)  #: use(1) => grad=on


        def main():
            torch.set_grad_enabled(False)
            work(1)


        def work(x):
            return use(x)  #: use(x) => grad=off
    """,
    "grad off for the whole file": """
        import torch

        torch.set_grad_enabled(False)
        use(0)  #: use(0) => grad=off


        def f(x):
            return use(x)  #: use(x) => grad=off
    """,
    "callers hold it off": """
        import torch
        from base import Base
        from torch import nn


        def evaluate(model, x):
            return forward_all(model, x)  #: forward_all(model, x) => grad=off


        def forward_all(model, x):
            return model(x)  #: model(x) => grad=off


        def both(model, x):
            return model(x)  #: model(x) => grad=unknown


        def recursive(model, x):
            recursive(model, x)
            return model(x)  #: model(x) => grad=off


        def alone(model, x):
            return model(x)  #: model(x) => grad=on


        def train(model, x):
            both(model, x)
            with torch.no_grad():
                evaluate(model, x)
                both(model, x)
                recursive(model, x)
                scale = lambda t: use(t)  #: use(t) => grad=off
                scale(x)


        class Evaluator(Base):
            def run(self, x):
                return use(x)  #: use(x) => grad=unknown

            def __call__(self, x):
                return use(x)  #: use(x) => grad=on


        class Net(nn.Module):
            def generate(self, x):
                return use(x)  #: use(x) => grad=on

            def forward(self, x):
                return use(x)  #: use(x) => grad=on

            def encode(self, x):
                return use(x)  #: use(x) => grad=unknown
    """,
    "compiled regions": """
        import functools
        import torch
        from torch import nn


        @torch.compile
        def a(x):
            return helper(x)  #: helper(x) => compiled=yes


        @torch.compile(mode="max-autotune")
        def b(x):
            return use(x)  #: use(x) => compiled=yes


        @functools.partial(torch.compile, dynamic=True)
        def c(x):
            return use(x)  #: use(x) => compiled=yes


        def helper(x):
            return use(x)  #: use(x) => compiled=yes


        def d(x):
            return use(x)  #: use(x) => compiled=yes


        fast = torch.compile(d)


        class Net(nn.Module):
            def forward(self, x):
                return self.part(x)  #: self.part(x) => compiled=yes

            def part(self, x):
                return use(x)  #: use(x) => compiled=yes

            def other(self, x):
                return use(x)  #: use(x) => compiled=no


        class Eager(nn.Module):
            def forward(self, x):
                return use(x)  #: use(x) => compiled=no


        model = Net()
        model = torch.compile(model)  #: torch.compile(model) => compiled=no
        pattern = re.compile("x")
    """,
    "steps for the loops of other files": """
        import torch

        EVERY = 4


        class Agent:
            def __init__(self, net):
                self.net = net.cuda()
                self.optimizer = torch.optim.Adam(net.parameters())

            def learn(self, x):
                use(1)  #: use(1) => hot=learn
                for _ in range(3):
                    use(2)  #: use(2) => hot=learn
                loss = self.net(x).mean()
                loss.backward()
                self.optimizer.step()
                self.note(loss)

            def note(self, loss):
                use(3)  #: use(3) => hot=learn via=note

            def gradients(self, x):
                use(4)  #: use(4) => hot=no
                self.net(x).mean().backward()

            def called(self, x):
                use(5)  #: use(5) => hot=caller via=called
                self.net(x).mean().backward()
                self.optimizer.step()

            def caller(self, x):
                use(6)  #: use(6) => hot=caller
                self.called(x)

            def observe(self, x):
                use(14)  #: use(14) => hot=observe
                self.memory.append(x)
                self.count = (self.count + 1) % EVERY
                if self.count == 0:
                    if len(self.memory) > 1000:
                        self.replay(use(15))  #: use(15) => hot=observe

            def replay(self, x):
                use(16)  #: use(16) => hot=observe via=replay
                self.net(x).mean().backward()
                self.optimizer.step()

            def in_batches(self, xs):
                for x in xs:
                    self.step_of_batch(x)

            def step_of_batch(self, x):
                use(17)  #: use(17) => hot=x via=step_of_batch
                self.net(x).mean().backward()
                self.optimizer.step()

            def update(self, x):
                use(12)  #: use(12) => hot=update
                self.fit_critic(x)

            def fit_critic(self, x):
                use(13)  #: use(13) => hot=update via=fit_critic
                self.net(x).mean().backward()
                self.optimizer.step()

            def run(self, loader):
                use(7)  #: use(7) => hot=no
                for x in loader:
                    self.net(x).mean().backward()
                    self.optimizer.step()  #: self.optimizer.step() => hot=x
                use(8)  #: use(8) => hot=no


        def whole(net, x):
            use(9)  #: use(9) => hot=no
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            net(x).mean().backward()
            optimizer.step()


        def reconstruct(net, x):
            use(20)  #: use(20) => hot=no
            refine(net, x)


        def refine(net, x):
            use(21)  #: use(21) => hot=no
            optimizer = torch.optim.LBFGS(net.parameters())
            net(x).mean().backward()
            optimizer.step()


        def demonstrate(net, x):
            learn_once(net, x, torch.optim.SGD(net.parameters(), 0.1))


        def learn_once(net, x, optimizer):
            use(18)  #: use(18) => hot=no
            net(x).mean().backward()
            optimizer.step()


        def test_learning(net, x, optimizer):
            learn_in_test(net, x, optimizer)


        def learn_in_test(net, x, optimizer):
            use(19)  #: use(19) => hot=no
            net(x).mean().backward()
            optimizer.step()


        def test_step(net, x, optimizer):
            use(10)  #: use(10) => hot=no
            net(x).mean().backward()
            optimizer.step()


        class TestNet:
            def one(self, net, x, optimizer):
                use(11)  #: use(11) => hot=no
                net(x).mean().backward()
                optimizer.step()
    """,
    "models that the file does not show as such": """
        import torch

        device = torch.device("cuda")


        def sample(sampler, shape, n):
            for i in range(n):
                use(1)  #: use(1) => hot=i
                y = sampler(torch.randn(shape, device=device))
            for j in range(n):
                use(2)  #: use(2) => hot=no
                y = sampler(shape)
            for k in range(n):
                use(3)  #: use(3) => hot=no
                sampler(torch.randn(shape, device=device))


        class Engine:
            def __init__(self, made):
                self.model = None
                self.policy = made().to(device)
                self.optimizer = torch.optim.Adam(self.policy.parameters())

            def embed(self, images):
                for image in images:
                    use(4)  #: use(4) => hot=image
                    y = self.model(image)

            def play(self, states):
                act, reset = self.policy.act, self.policy.reset_parameters
                choose = self.policy.act
                for state in states:
                    use(5)  #: use(5) => hot=state
                    choose(state)
                for other in states:
                    use(6)  #: use(6) => hot=no
                    act(other)
    """,
    "the main guard": """
        import multiprocessing as mp


        def worker(rank):
            use(rank)  #: use(rank) => guarded=yes


        def main():
            use(1)  #: use(1) => guarded=yes
            deeper(2)
            mp.spawn(worker)


        def deeper(x):
            use(x)  #: use(x) => guarded=yes
            return lambda: use(3)  #: use(3) => guarded=yes


        def public(x):
            use(x)  #: use(x) => guarded=no


        def shared(x):
            use(x)  #: use(x) => guarded=no


        shared(1)
        use(4)  #: use(4) => guarded=no
        if __name__ == "__main__":
            main()
            shared(2)
            use(5)  #: use(5) => guarded=yes
        if "__main__" == __name__ and True:
            use(6)  #: use(6) => guarded=yes
        if __name__ != "__main__":
            use(7)  #: use(7) => guarded=no
        else:
            use(8)  #: use(8) => guarded=yes
    """,
}


def test_places(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()


LONG_CONDITIONS = {
    "a sum": " + ".join(["a"] * 1200) + " > 3",
    "a conjunction": " and ".join(["a"] * 1200),
    "a disjunction": " or ".join(["a is None"] * 1200),
    "a counted sum": " + ".join(["i"] * 1200) + " % 10 == 0",
    "negations": "not " * 1200 + "a",
}


@pytest.mark.parametrize("condition", LONG_CONDITIONS.values(), ids=LONG_CONDITIONS.keys())
def test_long_conditions(condition: str, semantic_model: Callable[[str], Module]) -> None:
    """Conditions deeper than the stack of Python are answered, and what they guard is still in its loop."""
    module = semantic_model(f"for i, a in enumerate(x):\n    if {condition}:\n        f(a)\n")
    call = module.tree.nodes(cst.Call)[-1]
    assert len(module.flow.loops(call)) == 1
    assert places.hot(module, call) is None
    assert phase(module, call) is Phase.SETUP
    assert grad(module, call) is Grad.ON
    assert places.throttled(module, call) is (condition == LONG_CONDITIONS["a counted sum"])


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("tqdm(train_loader)", True),
        ("tqdm(enumerate(train_loader))", True),
        ("enumerate(train_loader)", True),
        ("tqdm(range(epochs))", False),
        ("enumerate(names)", False),
    ],
)
def test_loops_over_loaders(items: str, expected: bool, semantic_model: Callable[[str], Module]) -> None:
    """What a loop goes over may have been given a name first."""
    head = "from tqdm import tqdm\ndef f(train_loader, epochs, names):\n    bar = "
    module = semantic_model(f"{head}{items}\n    for x in bar:\n        g(x)\n")
    (loop,) = module.tree.nodes(cst.For)
    assert places.over_loader(module, loop) is expected
