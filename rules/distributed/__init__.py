"""Several devices and processes (TL7)."""
