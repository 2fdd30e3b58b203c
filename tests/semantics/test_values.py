"""What expressions are: kinds, devices, graphs, constants, and where each of them comes from."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "what is put into a mode, and what trains": """
        def run(net, trainer, agent):
            net.train()  #: net => kind=module
            trainer.train()  #: trainer => kind=unknown
            trainer.evaluate()
            agent.train()  #: agent => kind=module
            agent.eval()
    """,
    "what is stored in a dict": """
        from collections import OrderedDict

        import torch
        from torch.nn import functional as F

        def losses(model, x, y):
            out = {}
            out["loss"] = F.mse_loss(model(x.cuda()), y.cuda())
            out["rows"] = len(x)
            return out

        def means(given):
            named = OrderedDict()
            for name, value in given.items():
                named[name] = torch.as_tensor(value).mean()
            for name, value in named.items():
                named[name] = value.item()
            return named

        def step(model, optimizer, x, y):
            found = losses(model, x, y)
            found["loss"].backward()  #: found["loss"] => kind=tensor; found => kind=dict
            rows = found["rows"]  #: found["rows"] => kind=number
            optimizer.step()
            result = dict(loss=found["loss"], rate=0.1)
            result["mean"] = result["loss"].mean()
            print(result["rate"])  #: result["rate"] => kind=number
            print(result["mean"])  #: result["mean"] => kind=tensor
            for value in means(found).values():
                print(value)  #: value => kind=number
    """,
    "functions of which a condition picks one": """
        from torch.utils.data import DataLoader
        from tqdm import tqdm

        def run(data, shown):
            bar = tqdm if shown else iter
            for batch in bar(DataLoader(data)):  #: batch => kind=batch; bar(DataLoader(data)) => kind=loader
                print(batch)
    """,
    "what is asked of something on an accelerator as of an array": """
        import torch

        def search(model, done, net):
            done = done.cuda()
            for i in range(9):
                found = done[i].nonzero()  #: done[i] => kind=tensor device=accelerator; found => kind=tensor
                if float(done[i]) > 0:  #: done[i] => kind=tensor
                    return done.keys()  #: done => kind=unknown
            return net.cuda()[0].inverse(found)  #: net.cuda()[0] => kind=unknown
    """,
    "what a wrapper wraps": """
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP

        def f(model: nn.Module, x):
            model.module  #: model.module => kind=module
            net = DDP(nn.Linear(4, 4).cuda())
            net.module(x)  #: net.module => kind=module; net.module(x) => kind=tensor device=accelerator
    """,
    "what is drawn from a range or by a sampler": """
        import random
        from torch.utils.data import BatchSampler, SubsetRandomSampler

        def f(order, batches: BatchSampler):
            random.sample(range(9), 3)[0]  #: random.sample(range(9), 3)[0] => kind=number
            random.choices(order, k=3)[0]  #: random.choices(order, k=3)[0] => kind=unknown
            for i in SubsetRandomSampler(range(9)):
                print(i)  #: i => kind=number
            for rows in BatchSampler(SubsetRandomSampler(range(9)), 3, drop_last=True):
                print(rows)  #: rows => kind=list
                print(rows[0])  #: rows[0] => kind=number
            for rows in BatchSampler(order, 3, drop_last=False):
                print(rows[0])  #: rows[0] => kind=unknown
            for rows in batches:
                print(rows)  #: rows => kind=list
    """,
    "whole numbers have no graph": """
        import torch
        from torch import nn

        def f(x):
            y = nn.Linear(4, 4)(x)
            y.to(torch.uint8)  #: y.to(torch.uint8) => graph=detached
            y.to(dtype=torch.long)  #: y.to(dtype=torch.long) => graph=detached
            y.to(torch.float16)  #: y.to(torch.float16) => graph=attached
    """,
    "frozen modules": """
        import torch
        from torch import nn

        def f(x):
            net = nn.Linear(4, 4).eval().requires_grad_(False)
            net(x)  #: net(x) => graph=unknown
            other = nn.Linear(4, 4).requires_grad_(True)
            other(x)  #: other(x) => graph=attached
    """,
    "data that is asked like a tensor": """
        from torch import nn

        class Stats(nn.Module):
            def forward(self, x, store):
                shown = self.embed[-1].alpha.data.item()  #: self.embed[-1].alpha.data => kind=tensor
                return shown, x, self.reply.data.items()  #: self.reply.data => kind=unknown
    """,
    "what a variable was before torch has made a tensor of it": """
        import torch

        def f(denominator, rate, state, ready):
            size = rate * 0.5 ** state
            full = torch.full_like(denominator, size)  #: size => kind=unknown
            size = torch.full_like(denominator, size)
            return size.div_(denominator), full
    """,
    "several arguments decide what it is": """
        import torch

        def task(x: torch.Tensor):
            kinds = x.unique()  #: x.unique() => kind=tensor
            whole = torch.unique(x).int()  #: torch.unique(x).int() => kind=tensor
            pair = x.unique(return_counts=True)  #: x.unique(return_counts=True) => kind=tuple
            triple = torch.unique(x, return_inverse=True, return_counts=True)[2]
            print(triple)  #: triple => kind=tensor
            for kind in torch.round(x).unique().int():
                print(kind)  #: kind => kind=tensor
    """,
    "what a dictionary of modules holds": """
        from torch import nn

        class Chain(nn.ModuleDict):
            def forward(self, x):
                for part in self.values():
                    x = part(x)  #: part => kind=module
                return x

        class Heads(nn.Module):
            def __init__(self):
                super().__init__()
                self.heads = nn.ModuleDict({"a": nn.Linear(3, 3)})
                self.empty = nn.ModuleDict()
                self.options = {"a": 3}

            def forward(self, x):
                for name, head in self.heads.items():
                    x = head(x)  #: head => kind=module
                for head_ in self.empty.values():
                    x = head_(x)  #: head_ => kind=module
                for value in self.options.values():
                    x = x + value  #: value => kind=number
                return x
    """,
    "named tuples": """
        from collections import namedtuple
        from typing import NamedTuple
        import torch

        Loss = NamedTuple("Loss", [("total", torch.Tensor), ("steps", int)])
        Step = namedtuple("Step", "state, reward")
        Odd = namedtuple("Odd", ["state", *more])

        def f(x: torch.Tensor, rows):
            x = x.cuda()
            loss = Loss(total=x.sum(), steps=3)
            print(loss.total)  #: loss.total => kind=tensor device=accelerator
            print(loss.steps)  #: loss.steps => kind=number
            state, reward = Step(x, 1.0)
            print(state, reward)  #: state => kind=tensor device=accelerator; reward => kind=number
            batch = Step(*zip(*rows))
            print(batch.state)  #: batch.state => kind=unknown
            print(Odd(x).state)  #: Odd(x).state => kind=unknown
    """,
    "dicts of losses": """
        import torch
        from losses import build_criterion

        model = torch.nn.Linear(4, 1).cuda()
        criterion = build_criterion(options)
        parts = criterion(model(x.cuda()), y.cuda())
        print(parts)  #: parts => kind=batch device=accelerator graph=attached
        for name, part in parts.items():
            print(name)  #: name => kind=string
            print(part)  #: part => kind=tensor device=accelerator graph=attached
        loss, beside = criterion(model(x.cuda()), y.cuda())
        print(loss)  #: loss => kind=tensor
        print(beside.items())
        print(beside)  #: beside => kind=unknown
    """,
    "gradients of gradients": """
        import torch
        from torch import nn

        model = nn.Linear(4, 1)
        y = model(x).sum()
        a = torch.autograd.grad(y, x)[0]  #: torch.autograd.grad(y, x)[0] => kind=tensor graph=detached
        b = torch.autograd.grad(y, x, create_graph=True)[0]
        c = torch.autograd.grad(y, x, create_graph=False)[0]
        print(b)  #: b => graph=attached
        print(c)  #: c => graph=detached
    """,
    "a device that callers choose": """
        import torch
        import torch.nn.functional as F

        def told(x, device="cpu"):
            return x.to(device)  #: x.to(device) => device=accelerator

        def annotated(x: torch.Tensor, device: str, my_device: torch.device = torch.device("cpu")):
            y = x.to(device)  #: x.to(device) => device=accelerator
            return y.to(my_device)  #: y.to(my_device) => device=accelerator

        def called(x, device="cpu"):
            return x.to(device)  #: x.to(device) => device=cpu

        called(torch.ones(2))

        class Trainer:
            def __init__(self, device: str = "cpu", mode="cpu"):
                self.device = device
                self.place = torch.device(mode)

            def move(self, x):
                y = x.to(self.place)  #: x.to(self.place) => device=accelerator
                return x.to(self.device)  #: x.to(self.device) => device=accelerator
    """,
    "outputs that may be of several parts": """
        import torch

        device = torch.device("cuda")
        for images in torch.utils.data.DataLoader(torch.load("images")):
            out = model(images.to(device))
            if isinstance(out, (tuple, list)):
                out = out[0]
            picked = out.argmax(1)  #: out.argmax(1) => kind=tensor device=accelerator
    """,
    "losses of what is not known": """
        import torch
        from torch import nn

        def train(model, data, x, y):
            criterion = nn.MSELoss()
            out = data.inverse_transform(model(x.cuda()))
            loss = criterion(out, y.cuda())  #: criterion(out, y.cuda()) => kind=tensor graph=attached
            average_loss, rest = validate_model(model)
            use(average_loss)  #: average_loss => kind=unknown
            train_loss = train_epoch(model)
            use(train_loss)  #: train_loss => kind=unknown
            step_loss = train_step(model)
            use(step_loss)  #: step_loss => kind=tensor
            loss, loss_recon, loss_weight = model.losses(out)
            use(loss_recon)  #: loss_recon => kind=tensor
            use(loss_weight)  #: loss_weight => kind=unknown
            valid_loss = None
            if out:
                valid_loss, _ = handle(data)
            use(valid_loss)  #: valid_loss => kind=unknown

        def meta(model, data, meta_loss=None, loss=None):
            use(meta_loss)  #: meta_loss => kind=unknown
            use(loss)  #: loss => kind=tensor
    """,
    "factories and devices": """
        import torch

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        a = torch.zeros(3)  #: torch.zeros(3) => kind=tensor device=cpu graph=detached
        b = torch.zeros(3, device="cuda")  #: torch.zeros(3, device="cuda") => device=accelerator
        c = torch.randn(3, device=device)  #: torch.randn(3, device=device) => device=accelerator
        d = a.cuda()  #: a.cuda() => kind=tensor device=accelerator
        e = a.to(device)  #: a.to(device) => device=accelerator; device => kind=device
        f = b.cpu()  #: b.cpu() => device=cpu
        g = b + 1  #: b + 1 => kind=tensor device=accelerator
        h = b.sum()  #: b.sum() => kind=tensor device=accelerator
        i = b.item()  #: b.item() => kind=number
        j = b.tolist()  #: b.tolist() => kind=list
        k = b.shape + b.size()  #: b.shape => kind=shape; b.size() => kind=shape
        l = b.size(0)  #: b.size(0) => kind=number
        m = b.dim()  #: b.dim() => kind=number
        n = len(b)  #: len(b) => kind=number
        o = b.numpy()  #: b.numpy() => kind=ndarray
        p = b[0]  #: b[0] => kind=tensor device=accelerator
        q = b > 0  #: b > 0 => kind=tensor
        r = -b  #: -b => kind=tensor device=accelerator
        s = torch.zeros_like(b)  #: torch.zeros_like(b) => device=accelerator
        t = b.new_zeros(3)  #: b.new_zeros(3) => device=accelerator
        u = torch.from_numpy(o)  #: torch.from_numpy(o) => kind=tensor device=cpu
        v = b.to("cpu")  #: b.to("cpu") => device=cpu
        w = b.float()  #: b.float() => kind=tensor device=accelerator
        x = b.is_cuda  #: b.is_cuda => kind=bool
        y = b.dtype  #: b.dtype => kind=dtype
        z = b.device  #: b.device => kind=device
        aa = b.shape[0]  #: b.shape[0] => kind=number
        bb = torch.cat([b, b])  #: torch.cat([b, b]) => kind=tensor device=accelerator
        ch = torch.cat([zz.unsqueeze(0), u])  #: torch.cat([zz.unsqueeze(0), u]) => device=cpu
        cc = b is None  #: b is None => kind=bool
        dd = b.cpu().numpy()  #: b.cpu() => device=cpu; b.cpu().numpy() => kind=ndarray
        ee = torch.tensor([1.0]).to(b)  #: torch.tensor([1.0]).to(b) => device=accelerator
        ff = torch.tensor([1.0]).to(b.device)  #: torch.tensor([1.0]).to(b.device) => device=accelerator
        gg = b.argmax(dim=1)  #: b.argmax(dim=1) => kind=tensor device=accelerator
        hh = float(b)  #: float(b) => kind=number
        ii = f"{b}"  #: f"{b}" => kind=string
        jj = torch.zeros(3, dtype=torch.half)
        use(jj)  #: jj => dtype=torch.float16
        kk = b.numel()  #: b.numel() => kind=number
        ll = torch.arange(3)  #: torch.arange(3) => kind=tensor device=cpu
    """,
    "a module that is scored on loaders that nobody moves": """
        from torch import nn, no_grad
        from torch.utils.data import DataLoader

        class Net(nn.Module):
            def forward(self, x):  #: x => accelerated=no
                return x

            def score(self, loader: DataLoader):
                with no_grad():
                    return sum(self.forward(x).sum() for x, _ in loader)
    """,
    "a module that is scored on loaders, for others that move": """
        from torch import nn, no_grad
        from torch.utils.data import DataLoader

        class Net(nn.Module):
            def forward(self, x):  #: x => accelerated=yes
                return x

            def loader(self, data):
                return DataLoader(data)

            def score(self, batches):
                with no_grad():
                    return sum(self.forward(x).sum() for x, _ in batches)
    """,
    "losses are where their targets are": """
        import torch
        import torch.nn.functional as F
        from torch import nn

        def fit(model, x, y, z):
            y, criterion = torch.from_numpy(y), nn.CrossEntropyLoss()
            b = criterion(model(x), y)  #: criterion(model(x), y) => device=cpu
            c = F.cross_entropy(model(x), y)  #: F.cross_entropy(model(x), y) => device=cpu
            d = F.cross_entropy(model(x), z)  #: F.cross_entropy(model(x), z) => device=unknown
            e = F.ctc_loss(model(x), y, 3, 4)  #: F.ctc_loss(model(x), y, 3, 4) => device=unknown
    """,
    "unpacking": """
        import torch

        x = torch.randn(3, 4, device="cuda")
        values, indices = x.max(dim=1)  #: x.max(dim=1) => kind=tuple elements=tensor,tensor
        use(values)  #: values => kind=tensor device=accelerator
        rows, columns = x.shape
        use(rows)  #: rows => kind=number
        first, *rest = (1, x, "a")
        use(first, rest)  #: first => kind=number constant=1
        (a, b), c = (x, 2), None
        use(a, b, c)  #: a => kind=tensor; b => kind=number constant=2; c => kind=none
        left, right = x.chunk(2)
        use(left)  #: left => kind=tensor device=accelerator
        p = q = x
        use(p, q)  #: p => kind=tensor; q => kind=tensor
        count, total = 0, 0.0
        use(count)  #: count => kind=number
        pair = (x, 1)
        use(pair[0], pair[1])  #: pair[0] => kind=tensor; pair[1] => kind=number


        def two(x):
            return x, len(x)


        out, size = two(x)
        use(out, size)  #: out => kind=tensor device=accelerator; size => kind=number
        for i, (key, tensor) in enumerate({"a": x}.items()):
            use(i, key, tensor)  #: i => kind=number; key => kind=string; tensor => kind=tensor
        for i, row in enumerate(x):
            use(row)  #: row => kind=tensor device=accelerator
        for one, other in zip([x, x], range(2)):
            use(one, other)  #: one => kind=tensor device=accelerator; other => kind=number
    """,
    "numbers, not tensors": """
        import math
        import time
        import numpy as np

        start = time.time()  #: time.time() => kind=number
        took = time.time() - start  #: time.time() - start => kind=number
        root = math.sqrt(2)  #: math.sqrt(2) => kind=number
        array = np.zeros(3)  #: np.zeros(3) => kind=ndarray
        mean = array.mean()
        use(array + 1)  #: array + 1 => kind=ndarray
        text = "a" + "b"  #: "a" + "b" => kind=string
        flag = not text  #: not text => kind=bool
        workers = 0
        use(workers)  #: workers => kind=number constant=0
        both = 2 * workers + 1
        use(None)  #: None => kind=none
        names = ["a", "b"]  #: ["a", "b"] => kind=list
        use(names[0])  #: names[0] => kind=string
        table = {}  #: {} => kind=dict
        use(lambda: 1)  #: lambda: 1 => kind=function
        use(unknown)  #: unknown => kind=unknown
        use(unknown(1))  #: unknown(1) => kind=unknown
    """,
    "a training script": """
        import torch
        import torch.nn as nn
        import torch.optim as optim
        from torch.utils.data import DataLoader, TensorDataset

        device = torch.device("cuda")


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 1)
                self.scale = nn.Parameter(torch.ones(1))
                self.register_buffer("mean", torch.zeros(1))
                self.width = 3

            def forward(self, x):
                use(self.fc)  #: self.fc => kind=module cls=torch.nn.Linear
                use(self.scale)  #: self.scale => kind=tensor
                use(self.mean)  #: self.mean => kind=tensor
                use(self.width)  #: self.width => kind=number
                return self.fc(x)  #: self.fc(x) => kind=tensor; x => kind=tensor


        model = Net().to(device)  #: Net() => kind=module definition=Net; Net => kind=class
        criterion = nn.CrossEntropyLoss()  #: nn.CrossEntropyLoss() => kind=module
        optimizer = optim.AdamW(model.parameters())  #: optim.AdamW(model.parameters()) => kind=optimizer
        scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
        scaler = torch.amp.GradScaler("cuda")  #: torch.amp.GradScaler("cuda") => kind=scaler
        loader = DataLoader(TensorDataset(torch.zeros(3)), num_workers=0)
        use(loader, scheduler)  #: loader => kind=loader; scheduler => kind=scheduler
        use(model.parameters())  #: model.parameters() => kind=parameters
        use(loader.dataset)  #: loader.dataset => kind=dataset
        history = []
        running = 0.0
        for step, (inputs, targets) in enumerate(loader):
            inputs, targets = inputs.to(device), targets.to(device)
            use(step)  #: step => kind=number
            use(inputs)  #: inputs => kind=tensor device=accelerator
            outputs = model(inputs)  #: model(inputs) => kind=tensor device=accelerator graph=attached
            loss = criterion(outputs, targets)
            use(loss)  #: loss => kind=tensor device=accelerator graph=attached
            use(loss.detach())  #: loss.detach() => graph=detached device=accelerator
            use(loss.item())  #: loss.item() => kind=number
            running += loss.item()
            use(running)  #: running => kind=number
            _, predicted = outputs.max(1)
            hits = (predicted == targets).sum()
            use(hits)  #: hits => kind=tensor device=accelerator
            use(hits.item() / len(targets))  #: hits.item() / len(targets) => kind=number
            history.append(loss)
            with torch.no_grad():
                quiet = model(inputs)  #: model(inputs) => graph=detached
        use(history[0])  #: history[0] => kind=tensor
        for name, p in model.named_parameters():
            use(name, p)  #: name => kind=string; p => kind=tensor
            use(p.grad)  #: p.grad => kind=tensor
    """,
    "attributes across methods": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader


        class Trainer:
            steps = 0

            def __init__(self, data):
                self.device = "cuda"
                self.model = nn.Linear(3, 1).to(self.device)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                self.loader = DataLoader(data)
                self.best = None
                self.total = torch.zeros((), device=self.device)
                self.log = []

            def fit(self):
                use(self.model)  #: self.model => kind=module
                use(self.optimizer)  #: self.optimizer => kind=optimizer
                use(self.loader)  #: self.loader => kind=loader
                use(self.total)  #: self.total => kind=tensor device=accelerator
                use(self.steps)  #: self.steps => kind=number
                use(self.log)  #: self.log => kind=list
                use(self.missing)  #: self.missing => kind=unknown
                for batch in self.loader:
                    moved = batch.to(self.device)  #: batch.to(self.device) => device=accelerator
                    loss = self.loss(moved)  #: self.loss(moved) => kind=tensor callee=loss
                    self.best = loss
                use(self.best)  #: self.best => kind=tensor
                use(self.share)  #: self.share => kind=number
                use(self.make())  #: self.make() => callee=make

            def loss(self, batch):
                return self.model(batch).sum()  #: self.model(batch).sum() => kind=tensor device=accelerator

            @property
            def share(self):
                return len(self.log) / 10

            @classmethod
            def make(cls):
                return cls([])


        class Tuned(Trainer):
            def run(self):
                use(self.model)  #: self.model => kind=module
                return self.loss(1)  #: self.loss(1) => callee=loss kind=tensor


        trainer = Trainer([])
        use(trainer.model)  #: trainer.model => kind=module
        trainer.fit()  #: trainer.fit() => callee=fit
    """,
    "functions, closures, partial": """
        import functools
        import torch
        from torch import nn
        from torch.utils.data import DataLoader

        model = nn.Linear(3, 1).cuda()
        Loader = functools.partial(DataLoader, num_workers=4)
        loader = Loader([])  #: Loader([]) => kind=loader num_workers=given
        other = DataLoader([])  #: DataLoader([]) => num_workers=absent
        options = make()
        third = DataLoader([], **options)  #: DataLoader([], **options) => num_workers=unknown kind=loader


        def loss_of(x):
            return model(x).mean()  #: model(x).mean() => kind=tensor


        def accuracy(out, y):
            return (out.argmax(1) == y).float().mean().item()


        def choose(c, x):
            if c:
                return x
            return None


        def nothing(x):
            use(x)


        def annotated(x: torch.Tensor, n: int, m: nn.Module, d: "DataLoader", o: torch.optim.Optimizer):
            use(x, n)  #: x => kind=tensor; n => kind=number
            use(m, d, o)  #: m => kind=module; d => kind=loader; o => kind=optimizer


        def maybe(x: torch.Tensor | None = None, s: str = "a", *args, **kwargs):
            use(x, s)  #: x => kind=tensor; s => kind=string
            use(args, kwargs)  #: args => kind=tuple; kwargs => kind=dict


        def outer(x):
            total = torch.zeros((), device="cuda")

            def inner():
                return total + 1  #: total + 1 => kind=tensor device=accelerator
            return inner() + x


        x = torch.randn(3, device="cuda")
        use(loss_of(x))  #: loss_of(x) => kind=tensor device=accelerator callee=loss_of
        use(accuracy(x, x))  #: accuracy(x, x) => kind=number
        use(choose(1, x))  #: choose(1, x) => kind=tensor
        use(nothing(x))  #: nothing(x) => kind=none
        use(outer(x))  #: outer(x) => kind=tensor
        double = lambda t: t * 2
        use(double(x))  #: double(x) => kind=tensor callee=lambda
        half = functools.partial(loss_of)
        use(half(x))  #: half(x) => kind=tensor callee=loss_of
        values = [t.item() for t in x]  #: t.item() => kind=number; t => kind=tensor
        use(values)  #: values => kind=list
        table = {k: v for k, v in zip("ab", x)}
        use(table["a"])  #: table["a"] => kind=tensor
        use(sum(values) / len(values))  #: sum(values) / len(values) => kind=number
        y = x if x is not None else 1
        z = (w := x.sum())
        use(w, z)  #: w => kind=tensor; z => kind=tensor
    """,
    "local subclasses and the user's own classes": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader as Loader, Dataset, IterableDataset
        from mine import Base, BaseTransform, Trainer


        class Fast(Loader):
            pass


        class Faster(Fast):
            pass


        class DataLoader:
            def __iter__(self):
                return iter([])


        class Optimizer:
            def step(self):
                return 1


        class Data(Dataset):
            def __getitem__(self, i):
                return i


        class Stream(IterableDataset):
            pass


        class Block(nn.Sequential):
            pass


        class Net(Base):
            def __init__(self):
                super().__init__()

            def forward(self, x):
                return x


        class Plain:
            pass


        class Pad(BaseTransform):
            def forward(self, x):
                return x


        use(Pad())  #: Pad() => kind=object
        use(Fast([]))  #: Fast([]) => kind=loader num_workers=absent
        use(Faster([]))  #: Faster([]) => kind=loader
        use(DataLoader([]))  #: DataLoader([]) => kind=object
        use(Optimizer())  #: Optimizer() => kind=object
        use(Data())  #: Data() => kind=dataset
        use(Stream())  #: Stream() => kind=dataset
        use(Block())  #: Block() => kind=module
        use(Net())  #: Net() => kind=module
        use(Plain())  #: Plain() => kind=object
        use(Trainer())  #: Trainer() => kind=unknown
        for batch in DataLoader():
            use(batch)  #: batch => kind=unknown
    """,
    "conventional names come last": """
        import torch


        def train(model, loader, optimizer, criterion, device, data, flag):
            use(model)  #: model => kind=module
            use(loader)  #: loader => kind=loader
            use(optimizer)  #: optimizer => kind=optimizer
            use(criterion)  #: criterion => kind=module
            use(data, flag)  #: data => kind=unknown; flag => kind=unknown
            for x, y in loader:
                x = x.to(device)
                loss = criterion(model(x), y)  #: criterion(model(x), y) => kind=tensor graph=attached
                optimizer.step()
                use(loss.item())  #: loss.item() => kind=number


        def build(trainer, args):
            model = trainer.build_model(args)
            use(trainer.build_model)  #: trainer.build_model => kind=unknown
            use(trainer.model)  #: trainer.model => kind=module


        def shadow(model):
            use(model)  #: model => kind=string


        shadow("resnet")
        model = {"a": 1}
        use(model)  #: model => kind=dict
    """,
    "joins stay honest": """
        import torch


        def f(c, x):
            if c:
                y = torch.zeros(1, device="cuda")
            else:
                y = torch.zeros(1)
            use(y)  #: y => kind=tensor device=accelerator
            if c:
                z = torch.zeros(1)
            else:
                z = "text"
            use(z)  #: z => kind=unknown
            n = None
            if c:
                n = torch.zeros(1)
            use(n)  #: n => kind=tensor
            total = 0
            for i in range(3):
                total = total + torch.ones(1, device="cuda")
            use(total)  #: total => kind=tensor device=accelerator
            k = 0
            for i in range(3):
                k += i
            use(k)  #: k => kind=number
            w = 4
            if c:
                w = 0
            use(w)  #: w => kind=number constant=none
            try:
                v = torch.zeros(1)
            except RuntimeError:
                v = None
            use(v)  #: v => kind=tensor device=cpu
    """,
    "graphs": """
        import torch
        from torch import nn

        model = nn.Linear(3, 1).cuda()
        frozen = torch.ones(3, device="cuda")
        leaf = torch.ones(3, device="cuda", requires_grad=True)
        use(frozen * 2)  #: frozen * 2 => graph=detached
        use(leaf * 2)  #: leaf * 2 => graph=attached
        out = model(frozen)
        use(out)  #: out => graph=attached
        use(out.argmax(1))  #: out.argmax(1) => graph=detached
        use(out > 0)  #: out > 0 => graph=detached
        use(out.data)  #: out.data => graph=detached
        use(out.cpu())  #: out.cpu() => graph=attached device=cpu
        use(out.clone())  #: out.clone() => graph=attached
        use(out.detach() + frozen)  #: out.detach() + frozen => graph=detached
        use([out])  #: [out] => kind=list


        @torch.no_grad()
        def evaluate(x):
            return model(x)  #: model(x) => graph=detached


        use(evaluate(frozen))  #: evaluate(frozen) => kind=tensor graph=detached
    """,
    "accelerate and lightning": """
        import pytorch_lightning as pl
        import torch
        from accelerate import Accelerator
        from torch import nn
        from torch.utils.data import DataLoader

        accelerator = Accelerator()  #: Accelerator() => kind=accelerator accelerated=yes
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader([])
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        use(model, optimizer)  #: model => kind=module; optimizer => kind=optimizer
        for x in loader:  #: loader => kind=loader
            loss = model(x).sum()
            use(loss)  #: loss => kind=tensor device=accelerator
            use(accelerator.device)  #: accelerator.device => kind=device


        class Lit(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                x, y = batch
                use(x)  #: x => kind=batch graph=detached
                return self(x).sum()  #: self(x) => callee=forward

            def forward(self, x):
                return x
    """,
    "devices in all spellings": """
        import argparse
        import torch
        from accelerate import Accelerator
        from torch import nn

        args = argparse.ArgumentParser().parse_args()
        accelerator = Accelerator()
        mps = torch.device("mps")
        current = torch.accelerator.current_accelerator()

        def f(x: torch.Tensor, y: torch.Tensor, device, local_rank, cfg):
            a = x.to(device)  #: x.to(device) => device=accelerator
            b = x.to(args.device)  #: x.to(args.device) => device=accelerator
            c = x.to(accelerator.device)  #: x.to(accelerator.device) => device=accelerator
            d = x.to(y)  #: x.to(y) => device=unknown
            e = x.to(a)  #: x.to(a) => device=accelerator
            g = x.to("xpu:1")  #: x.to("xpu:1") => device=accelerator
            h = x.to(mps)  #: x.to(mps) => device=accelerator
            i = x.to(current)  #: x.to(current) => device=accelerator
            j = x.to(f"cuda:{local_rank}")  #: x.to(f"cuda:{local_rank}") => device=accelerator
            k = x.to(local_rank)  #: x.to(local_rank) => device=accelerator
            l = x.cuda(local_rank)  #: x.cuda(local_rank) => device=accelerator
            m = x.xpu()  #: x.xpu() => device=accelerator
            n = x.to(cfg["device"])  #: x.to(cfg["device"]) => device=accelerator
            r = x.to(torch.cuda.current_device())  #: x.to(torch.cuda.current_device()) => device=accelerator
            t = x.to(0)  #: x.to(0) => device=accelerator
            o = x.to(device="cpu")  #: x.to(device="cpu") => device=cpu
            p = x.to(torch.float16)  #: x.to(torch.float16) => device=unknown
            q = torch.ones_like(a)  #: torch.ones_like(a) => device=accelerator
            return torch.ones(3, device=a.device)  #: torch.ones(3, device=a.device) => device=accelerator

        class Trainer:
            def __init__(self, device):
                self.device = device
                self.net = nn.Linear(3, 3).to(self.device)

            def step(self, x: torch.Tensor):
                y = x.to(self.device)  #: x.to(self.device) => device=accelerator
                return self.net(y)  #: self.net(y) => device=accelerator

        def placed():
            net = nn.Linear(3, 3)
            net.to("cuda")
            with torch.device("cuda"):
                made = torch.zeros(3)  #: torch.zeros(3) => device=unknown
            for p in net.parameters():
                use(p)  #: p => kind=tensor
            return net(made)
    """,
    "code that asks where a model is": """
        import torch

        def predict(model, loader):
            device = next(model.parameters()).device  #: next(model.parameters()) => accelerated=yes
            for x in loader:
                yield model(x.to(device))

        class Net(torch.nn.Module):
            @property
            def device(self):
                return next(self.parameters()).device  #: next(self.parameters()).device => device=accelerator

            def start(self):
                return torch.zeros(3, device=self.device)  #: self.device => device=accelerator
    """,
    "devices that are handed on": """
        from agents import Agent

        class Trainer(Agent):
            def __init__(self, net, device=None):
                super().__init__(net, device)  #: net => accelerated=yes
                self.net.train()
    """,
    "tensors told by how they are asked": """
        import torch

        def f(self, loader, frame):
            found, out = self.compute(loader)
            a = out.sort(dim=1)  #: out => kind=tensor; out.sort(dim=1) => kind=tuple
            b = self.compute(a).mean(dim=0)  #: self.compute(a).mean(dim=0) => kind=tensor
            c = frame.mean(axis=0)  #: frame.mean(axis=0) => kind=unknown
            d = found.mean()  #: found => kind=unknown
    """,
    "a function that promises a tensor and returns a pair": """
        import torch

        def prepare(latents, count: int) -> torch.Tensor:
            if latents is not None:
                return latents.to("cuda")
            return torch.randn(count, 4), count

        latents, kept = prepare(None, 3)
        use(kept)  #: kept => kind=number
        use(latents)  #: latents => kind=tensor
    """,
    "what has become of a tensor": """
        import numpy as np

        def write(model, loader, scaler, file):
            for x in loader:
                out = model(x).detach().cpu()
                out = out.numpy().tolist()
                if scaler is not None:
                    out = scaler.transform(out)[0]
                if isinstance(out, list):
                    out = np.array(out).flatten().tolist()
                    if len(out) == 1:
                        out = out[0]
                file.write("%f" % out)  #: out => kind=unknown
    """,
    "what another file makes of a loss": """
        from utils import as_number

        def train(model, loader):
            for x, y in loader:
                loss = model(x) - y
                loss.backward()
                use(loss)  #: loss => kind=tensor
                loss = as_number(loss)
                use(loss)  #: loss => kind=unknown
    """,
    "lengths that a forward gets": """
        from torch import nn

        class Host(nn.Module):
            def forward(self, x, lengths):
                x = x.cuda()
                return use(x, lengths)  #: lengths => device=cpu

        class Device(nn.Module):
            def forward(self, x, lengths, mask):
                mask = mask.to(lengths.device)
                return use(x, lengths.cpu().numpy())  #: lengths => device=unknown
    """,
    "what pipelines register": """
        from diffusers import DiffusionPipeline

        class Sampler(DiffusionPipeline):
            def __init__(self, unet, scheduler, tokenizer, guide: "GuideModel"):
                super().__init__()
                self.register_modules(unet=unet, scheduler=scheduler, tokenizer=tokenizer, steering=guide)

            def __call__(self, x):
                use(self.unet)  #: self.unet => kind=module
                use(self.scheduler)  #: self.scheduler => kind=unknown
                use(self.tokenizer)  #: self.tokenizer => kind=unknown
                use(self.steering)  #: self.steering => kind=module
    """,
    "what sorts and compares hands to its key": """
        import torch

        losses = [torch.zeros(3).cuda().sum() for _ in range(3)]
        worst = max(losses, key=lambda loss: loss.abs())  #: loss.abs() => kind=tensor device=accelerator
        losses.sort(key=lambda one: one.detach())  #: one.detach() => kind=tensor device=accelerator
        order = sorted(range(3), key=lambda index: -index)  #: -index => kind=number
    """,
    "a file that stays on the cpu": """
        import torch

        device = torch.device("cpu")
        x = torch.zeros(3).to(device)  #: torch.zeros(3).to(device) => device=cpu accelerated=no
        for i in range(3):
            y = x.sum()  #: x.sum() => device=cpu
    """,
    "a name picks among what is left open": """
        import torch
        import records
        from folder import default_loader

        def number_or_list(step):
            return [1.0] if step == 0 else float(step)

        def number_or_tensor(step, x: torch.Tensor):
            return float(step) if step > 0 else x.mean()

        def number_or_stored(step):
            return float(step) if step > 0 else records.read("loss")

        def start_or_stored(step):
            return 0.0 if step == 0 else records.read("loss")

        def images(paths, loader=default_loader):
            return [loader(path) for path in paths]  #: loader => kind=unknown

        def report(step, x: torch.Tensor):
            a_loss = number_or_list(step)
            print(a_loss)  #: a_loss => kind=unknown
            b_loss = number_or_tensor(step, x)
            print(b_loss)  #: b_loss => kind=tensor
            c_loss = number_or_stored(step)
            print(c_loss)  #: c_loss => kind=unknown
            d_loss = start_or_stored(step)
            print(d_loss)  #: d_loss => kind=tensor
            e_loss = records.read("loss")
            print(e_loss)  #: e_loss => kind=tensor

        class Run:
            def __init__(self, path):
                self.loader = {"a": 1, "b": [path]}[path]
                self.net = records.read(path)
                print(self.loader, self.net)  #: self.loader => kind=unknown; self.net => kind=module
    """,
    "match, async, walrus, star, del, global": """
        import torch

        cache = None


        async def fetch(stream):
            async for chunk in stream:
                x = torch.zeros(1, device="cuda")
                use(x)  #: x => kind=tensor device=accelerator
            return x


        def pick(kind, x):
            match kind:
                case "zeros":
                    y = torch.zeros(1)
                case "ones":
                    y = torch.ones(1)
                case _:
                    raise ValueError(kind)
            use(y)  #: y => kind=tensor device=cpu


        def fill():
            global cache
            cache = torch.zeros(1, device="cuda")


        def read():
            return cache  #: cache => kind=tensor device=accelerator


        def drop():
            x = torch.zeros(1)
            del x
            use(x)  #: x => kind=unknown


        def loop(items):
            while (item := next(items)) is not None:
                use(item)  #: item => kind=unknown
            first, *rest = torch.zeros(3), 1, 2
            use(first)  #: first => kind=tensor
            use(*rest)  #: rest => kind=list
    """,
    "generic classes of the file, and shapes in annotations": """
        from typing import Generic, TypeVar

        import torch
        from jaxtyping import Float

        Batch = TypeVar("Batch")


        class Unit(Generic[Batch]):
            def __init__(self):
                self.scale = torch.ones(3)


        def run(unit: Unit[Batch], images: Float[torch.Tensor, "batch 3 height width"]):
            use(unit.scale)  #: unit.scale => kind=tensor
            use(images)  #: images => kind=tensor
    """,
    "attributes that are filled in later": """
        from typing import Optional

        import torch


        class Request:
            def __init__(self):
                self.buffer: Optional[torch.Tensor] = None
                self.note: str | None = None
                self.other = None

            def reset(self):
                self.buffer = None


        def read(request: Request):
            use(request.buffer)  #: request.buffer => kind=tensor
            use(request.note)  #: request.note => kind=string
            use(request.other)  #: request.other => kind=none


        def moved(given, other):
            use(given.cuda())  #: given.cuda() => kind=unknown device=accelerator
            use(other.cpu())  #: other.cpu() => kind=unknown device=cpu


        def typed(x: torch.Tensor):
            host = torch.tensor([1.0, 2.0])
            on = torch.zeros(2, device="cuda")
            use(host.type_as(on))  #: host.type_as(on) => kind=tensor device=accelerator
            use(host.type(on.type()))  #: host.type(on.type()) => kind=tensor device=accelerator
            use(host.type_as(x))  #: host.type_as(x) => kind=tensor device=unknown
            use(torch.tensor(on))  #: torch.tensor(on) => kind=tensor device=accelerator
            use(torch.tensor(host))  #: torch.tensor(host) => kind=tensor device=cpu
    """,
    "variables of functions around": """
        import torch


        def receive(token: torch.Tensor, late: torch.Tensor, again: torch.Tensor):
            token = token.cpu()

            def note():
                use(token)  #: token => kind=tensor device=cpu
                use(late)  #: late => kind=tensor device=unknown

            late = late.cpu()
            for _ in range(3):

                def inner():
                    use(again)  #: again => kind=tensor device=unknown

                again = again.cpu()
            return note, inner
    """,
    "trainers of transformers": """
        from torch.utils.data import DataLoader
        from transformers import Trainer


        class Preferring(Trainer):
            def log_probs(self, dataset):
                loader = self.accelerator.prepare(DataLoader(dataset))
                for batch in loader:
                    use(self.accelerator)  #: self.accelerator => kind=accelerator
                    use(batch["ids"])  #: batch["ids"] => device=accelerator
    """,
}


def test_values(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
