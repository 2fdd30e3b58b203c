"""Compilers and precision (TL5)."""
