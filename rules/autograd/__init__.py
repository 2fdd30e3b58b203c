"""Gradients and the training step (TL3)."""
