"""Precision, and what cuDNN is told (TL5)."""
