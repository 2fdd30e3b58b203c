"""Which networks convolve, and whether what they are given has one size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchlint.rules.model.channels_first_convolutions import needs_channels_first
from torchlint.rules.precision.cudnn_benchmark_off.sizes import one_size
from torchlint.semantics.module import Module
from torchlint.semantics.program import Program, convolutional

PROGRAM = """
import timm
import torch
import torchvision
import segmentation_models_pytorch as smp
from torch import nn
from torchvision import transforms
from nets import ResNet18, Net, UNet, ViT, TextCNN

{definitions}

model = {model}
model.cuda()
optimizer = torch.optim.Adam(model.parameters())
for x in loader():
    loss = model(x.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OWN = """
def block(n, m):
    return nn.Sequential(nn.Conv{d}d(n, m, 3), nn.ReLU())

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(block(3, 8), {more})

    def forward(self, x):
        return self.body(x){view}
"""


def own(d: int = 2, more: str = "nn.Conv2d(8, 8, 1)", view: str = "") -> str:
    """A network of the file."""
    return OWN.format(d=d, more=more, view=view)


# Model, definitions: convolutional over images, over anything, channels first needed.
NETWORKS = {
    "torchvision": ("torchvision.models.resnet18()", "", True, True, False),
    "a table of torchvision": ("torchvision.models.__dict__[arch]()", "", True, True, True),
    "a transformer of torchvision": ("torchvision.models.vit_b_16()", "", False, False, False),
    "a detector": ("torchvision.models.detection.ssd300_vgg16()", "", False, False, False),
    "timm": ("timm.create_model('resnet50.a1_in1k')", "", True, True, False),
    "a transformer of timm": ("timm.create_model('vit_base_patch16_224')", "", False, False, False),
    "timm by an option": ("timm.create_model(args.model)", "", False, False, False),
    "segmentation": ("smp.Unet('resnet34')", "", True, True, False),
    "segmentation by a transformer": ("smp.Unet('mit_b2')", "", False, False, False),
    "by its name": ("ResNet18()", "", True, True, True),
    "by its name, wrapped": ("nn.DataParallel(UNet(3))", "", True, True, True),
    "by no name": ("Net()", "", False, False, True),
    "a transformer by its name": ("ViT()", "", False, False, True),
    "over texts by its name": ("TextCNN()", "", False, False, True),
    "of the file": ("Own()", own(), True, True, False),
    "of the file, with view": ("Own()", own(view=".view(2, -1)"), True, True, True),
    "in a sequence": ("nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3))", "", True, True, False),
    "over volumes": ("nn.Sequential(nn.Conv3d(3, 8, 3), nn.Conv3d(8, 8, 3))", "", False, True, False),
    "over volumes and images": ("Own()", own(3), False, True, False),
    "over sequences": ("Own()", own(1, "nn.Linear(8, 8)"), False, False, False),
    "patches": ("Own()", own(2, "nn.TransformerEncoderLayer(8, 2)"), False, False, False),
    "one convolution": ("Own()", own(2, "nn.Linear(8, 2)"), True, True, False),
    "words": ("Own()", own(2, "nn.Embedding(8, 2)"), False, False, False),
    "no convolution": ("nn.Linear(8, 8)", "", False, False, False),
}


@pytest.mark.parametrize(
    ("model", "definitions", "images", "anything", "first"), NETWORKS.values(), ids=NETWORKS
)
def test_which_networks_convolve(
    model: str,
    definitions: str,
    images: bool,
    anything: bool,
    first: bool,
    semantic_model: Callable[[str], Module],
) -> None:
    module = semantic_model(PROGRAM.format(model=model, definitions=definitions))
    training = Program.of(module).training
    assert training is not None
    trained = training.models[0]
    assert convolutional(module, trained, volumes=False) is images
    assert convolutional(module, trained) is anything
    assert needs_channels_first(module, trained) is first


SIZES = {
    "nothing": ("", False),
    "a crop": ("transforms.RandomResizedCrop(224)", True),
    "a crop of another library": ("A.CenterCrop(height=224, width=224)", True),
    "both sides": ("transforms.Resize((256, 256))", True),
    "the shorter side": ("transforms.Resize(256)", False),
    "a data set": ("torchvision.datasets.CIFAR10('data')", True),
    "a data set of any size": ("torchvision.datasets.VOCSegmentation('data')", False),
    "an option": ("print(args.image_size)", True),
    "made up": ("x = torch.randn(8, 3, 32, 32)", True),
    "a vector": ("x = torch.randn(8, 3)", False),
    "stacked": ("torch.utils.data.DataLoader(data, 32)", True),
    "one by one": ("torch.utils.data.DataLoader(data)", False),
    "collated": ("torch.utils.data.DataLoader(data, 32, collate_fn=pad)", False),
    "several scales": ("print(args.multi_scale, args.image_size)", False),
    "detection": ("boxes = find(transforms.RandomResizedCrop(224))", False),
    "sounds": ("import torchaudio\nprint(args.input_size)", False),
}


@pytest.mark.parametrize(("code", "expected"), SIZES.values(), ids=SIZES)
def test_which_batches_have_one_size(
    code: str, expected: bool, semantic_model: Callable[[str], Module]
) -> None:
    assert one_size(semantic_model(PROGRAM.format(model="ResNet18()", definitions=code))) is expected
