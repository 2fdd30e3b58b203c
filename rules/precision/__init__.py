"""The precision that programs compute in (TL5)."""
