"""Small programs as users write them: each has something that a harness can stumble over."""

from __future__ import annotations

# Every program begins so; ``step`` trains ``model`` once.
_HEAD = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(16, 4), torch.randn(16, 1)


def step(optimizer=optimizer):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()


"""

FOUND = {
    "argparse": _HEAD
    + """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
if __name__ == "__main__":
    for number in range(parser.parse_args().steps):
        step()
""",
    "generative": """\
import torch
from torch import nn

generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
of_generator = torch.optim.Adam(generator.parameters())
of_critic = torch.optim.Adam(critic.parameters())
while True:
    for turn in range(3):
        of_critic.zero_grad()
        (critic(generator(torch.randn(8, 2)).detach()).mean() - critic(torch.randn(8, 4)).mean()).backward()
        of_critic.step()
    of_generator.zero_grad()
    (-critic(generator(torch.randn(8, 2))).mean()).backward()
    of_generator.step()
""",
    "closure": _HEAD
    + """\
solver = torch.optim.LBFGS(model.parameters(), max_iter=3)


def closure():
    solver.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    return loss


while True:
    solver.step(closure)
""",
    "stages": _HEAD
    + """\
for stage in range(10_000):
    fresh = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(2):
        step(fresh)
""",
    "scaler": _HEAD
    + """\
scaler = torch.amp.GradScaler("cpu")
while True:
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
""",
    "inference": """\
import torch
from torch import nn

normalize, model = nn.LayerNorm(4, elementwise_affine=False), nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
teacher = nn.Linear(4, 4)
teacher(torch.randn(1, 4))
with torch.no_grad():
    while True:
        model(normalize(torch.randn(16, 4)))
""",
    "trial": """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
print(model(torch.zeros(1, 4)).shape)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    model(torch.randn(16, 4)).square().mean().backward()
    optimizer.step()
""",
    "compiled": _HEAD
    + """\
model = torch.compile(model, backend="eager")
while True:
    step()
""",
    "short": _HEAD
    + """\
import sys

for number in range(3):
    step()
sys.exit(0)
""",
    "swallowing": _HEAD
    + """\
while True:
    try:
        step()
    except:
        print("never mind")
""",
    "leaving": _HEAD
    + """\
import atexit, signal, threading, time

atexit.register(time.sleep, 600)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=time.sleep, args=(600,)).start()
try:
    while True:
        step()
except BaseException:
    print("stopped early")
""",
    "writing": _HEAD
    + """\
import os
from pathlib import Path

Path(__file__).with_name("data.txt").write_text("overwritten")
Path("checkpoint.pt").write_text("made")
os.chdir("/")
import matplotlib.pyplot as plots

plots.plot([1, 2])
plots.show()
for number in range(100):
    print("x" * 100_000 if number == 50 else number)
    step()
""",
}
"""Programs whose steps are found, by a name for each."""
