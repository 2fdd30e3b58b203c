"""Several GPUs (TL7)."""
