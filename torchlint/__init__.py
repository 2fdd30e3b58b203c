"""A static linter that finds the lines that make PyTorch programs slow, and fixes them."""

__version__ = "0.1.0"
