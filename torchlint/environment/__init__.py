"""What the machine and its settings mean for PyTorch: facts read from it, and advice with its source.

``machine`` reads the facts, ``advice`` judges them, and ``interpreter`` asks a Python for its torch.
Nothing is changed, and what cannot be read is said to be unknown.
"""
