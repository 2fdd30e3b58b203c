"""The precision that programs compute in, and what cuDNN is told (TL5)."""
