import torch
from torch import nn
from torch.utils.data import DataLoader


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


def train(model, dataset, optimizer, criterion):
    device = torch.device("cuda")
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8)
    total = 0.0
    for images, labels in loader:
        loss = criterion(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"loss {total / len(loader):.3f}")
