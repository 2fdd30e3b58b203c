"""What is compiled, and what is not (TL5)."""
