"""Optimizers and updates of parameters (TL5)."""
