"""What feeds the device: loaders, datasets and batches (TL1)."""
