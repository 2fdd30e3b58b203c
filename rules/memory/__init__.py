"""The memory of the device (TL6)."""
