"""Which memory the host holds tensors and arrays in: pageable, pinned, or nothing the program shows."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "what makes a tensor": """
        import numpy as np
        import torch

        PIN = torch.cuda.is_available()
        a = torch.zeros(3)
        b = torch.zeros(3, pin_memory=True)
        c = torch.tensor([1, 2], pin_memory=PIN)
        d = torch.tensor([1, 2], pin_memory=False)
        e = torch.zeros(3, device="cuda")
        f = torch.from_numpy(np.zeros(3))
        g = torch.as_tensor([1, 2])
        h = torch.zeros(3, **options)
        i = torch.empty_like(b)
        j = torch.cat([a, a])
        k = torch.cat([a, a], out=b)
        l = torch.stack([a, a], 0)
        m = np.arange(3)
        n = torch.from_numpy(given)
        o = torch.FloatTensor([1, 2])
        print(a)  #: a => memory=pageable
        print(b)  #: b => memory=pinned
        print(c)  #: c => memory=pinned
        print(d)  #: d => memory=pageable
        print(e)  #: e => memory=unknown device=accelerator
        print(f)  #: f => memory=pageable
        print(g)  #: g => memory=pageable
        print(h)  #: h => memory=unknown
        print(i)  #: i => memory=pageable
        print(j)  #: j => memory=pageable device=cpu
        print(k)  #: k => memory=pinned
        print(l)  #: l => memory=pageable
        print(m)  #: m => memory=pageable
        print(n)  #: n => memory=unknown
        print(o)  #: o => memory=pageable
    """,
    "what is set beforehand": """
        from functools import partial

        import torch

        def make(device: torch.device):
            order = partial(torch.randperm, device=device)
            plain = partial(torch.zeros, dtype=torch.long)
            print(order(4))  #: order(4) => device=accelerator memory=unknown
            print(order(4, device="cpu"))  #: order(4, device="cpu") => device=cpu
            print(plain(4))  #: plain(4) => device=cpu memory=pageable
    """,
    "what becomes of it": """
        import torch

        a = torch.zeros(3)
        b = torch.zeros(3, 4, pin_memory=True)
        print(a.pin_memory())  #: a.pin_memory() => memory=pinned
        print(b.view(-1))  #: b.view(-1) => memory=pinned
        print(b.numpy())  #: b.numpy() => memory=pinned
        print(torch.from_numpy(b.numpy()))  #: torch.from_numpy(b.numpy()) => memory=pinned
        print(b[:2])  #: b[:2] => memory=pinned
        print(b[1])  #: b[1] => memory=pinned
        print(b[:, :2])  #: b[:, :2] => memory=pageable
        print(b[:2, :2])  #: b[:2, :2] => memory=either
        print(b[[0, 1]])  #: b[[0, 1]] => memory=pageable
        print(b + 1)  #: b + 1 => memory=pageable
        print(b.float())  #: b.float() => memory=either
        print(a.float())  #: a.float() => memory=pageable
        print(b.clone())  #: b.clone() => memory=pageable
        print(b.unsqueeze(0))  #: b.unsqueeze(0) => memory=pinned
        print(b.sum(0))  #: b.sum(0) => memory=pageable
        print(b.copy_(a))  #: b.copy_(a) => memory=pinned
        print(a.cuda())  #: a.cuda() => memory=unknown
        print(a.cuda().cpu())  #: a.cuda().cpu() => memory=pageable
        c = a.cuda()
        print(c.to("cpu", non_blocking=True))  #: c.to("cpu", non_blocking=True) => memory=pinned
        either = a if flag else b
        print(either)  #: either => memory=either
    """,
    "attributes, helpers and parameters": """
        import numpy as np
        import torch

        class Buffer:
            def __init__(self, size, device, pin_memory):
                self.cpu = torch.zeros(size, device="cpu", pin_memory=pin_memory)
                self.gpu = torch.zeros_like(self.cpu, device=device)
                self.np = self.cpu.numpy()

        class Runner:
            def __init__(self, device, pin_memory):
                self.device = device
                self.rows = Buffer(8, device, pin_memory)
                self.lengths = torch.zeros(8, dtype=torch.int32)
                self.counts = np.zeros(8)

            def run(self, n):
                print(self.rows.cpu)  #: self.rows.cpu => memory=pinned device=cpu
                print(self.rows.gpu)  #: self.rows.gpu => device=accelerator memory=unknown
                print(self.rows.np)  #: self.rows.np => memory=pinned
                print(self.lengths[:n])  #: self.lengths[:n] => memory=pageable device=cpu
                counts = torch.from_numpy(self.counts[:n])
                print(counts)  #: counts => memory=pageable

        def read(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):
            rows = a.numpy()
            print(rows)
            print(a)  #: a => device=cpu
            print(b)  #: b => device=unknown
            if c.is_cuda:
                c = c.cpu()
            print(c.numpy())  #: c => device=unknown

        def train(model, loader):
            for images, labels in loader:
                scaled = images / 255
                print(scaled)  #: scaled => memory=unknown
                print(torch.zeros_like(labels))  #: torch.zeros_like(labels) => memory=unknown
                print(images[:2])  #: images[:2] => memory=unknown

        def ahead(n):
            return torch.tensor([n, 2], pin_memory=True)

        def plain(values):
            table = torch.tensor(values)
            return table

        def send(t):
            return t  #: t => memory=pageable

        print(ahead(3))  #: ahead(3) => memory=pinned
        print(plain([1, 2]))  #: plain([1, 2]) => memory=pageable
        send(plain([3]))
    """,
}


def test_memory(expectation: Callable[[], None]) -> None:
    expectation()
