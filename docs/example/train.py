import torch
from torch.utils.data import DataLoader


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
