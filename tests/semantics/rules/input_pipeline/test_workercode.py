"""What the worker processes of loaders run, and what certainly uses an accelerator."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "functions": """
        from torch.utils.data import DataLoader, Dataset, Subset


        class Images(Dataset):
            def __getitem__(self, index):
                return self.read(index)  #: self.read(index) => worker=__getitem__,2,forked

            def read(self, index):
                return load(index)  #: load(index) => worker=__getitem__,2,forked

            def preload(self):
                return open(self.path)  #: open(self.path) => worker=no


        class Rare(Dataset):
            def __getitem__(self, index):
                return abs(index)  #: abs(index) => worker=__getitem__,1


        class Elsewhere(Dataset):
            def __getitem__(self, index):
                return abs(index)  #: abs(index) => worker=__getitem__,0


        class Other:
            def __getitem__(self, index):
                return abs(index)  #: abs(index) => worker=no


        def load(index):
            return open(index)  #: open(index) => worker=__getitem__,2,forked


        def collate(samples):
            return list(samples)  #: list(samples) => worker=collate,1,forked


        def make(data, count):
            DataLoader(Images())
            DataLoader(Subset(Images(), [1]), num_workers=2)
            DataLoader(Rare(), num_workers=count)
            DataLoader(data, collate_fn=collate, pin_memory=True)
    """,
    "devices": """
        import torch
        from accelerate import Accelerator

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        host = torch.device("cpu")
        accelerator = Accelerator()


        class Holder:
            def __init__(self, given, index):
                self.given = given
                self.device = f"cuda:{index}"

            def run(self, x, other, device_id):
                x.cuda()  #: x.cuda() => reaches=yes
                x.to(device)  #: x.to(device) => reaches=yes
                x.to("cuda:1")  #: x.to("cuda:1") => reaches=yes
                x.to(device=self.device)  #: x.to(device=self.device) => reaches=yes
                x.to(accelerator.device)  #: x.to(accelerator.device) => reaches=yes
                torch.zeros(3, device=device)  #: torch.zeros(3, device=device) => reaches=yes
                torch.cuda.FloatTensor(3)  #: torch.cuda.FloatTensor(3) => reaches=yes
                x.to(host)  #: x.to(host) => reaches=no
                x.to(self.given)  #: x.to(self.given) => reaches=no
                x.to(other)  #: x.to(other) => reaches=no
                x.to(torch.float16)  #: x.to(torch.float16) => reaches=no
                x.to(x.device)  #: x.to(x.device) => reaches=no
                other(device=device)  #: other(device=device) => reaches=no


        def passed(x, device):
            x.to(device)  #: x.to(device) => reaches=yes


        def unclear(x, device):
            x.to(device)  #: x.to(device) => reaches=no


        passed(1, "cuda")
    """,
}


def test_worker_code(expectation: Callable[[], None]) -> None:
    """One expectation of one program."""
    expectation()
