"""What runs inside a measuring process: standard library and torch only; started by ``processes``."""
