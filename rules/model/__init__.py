"""How the network itself is built (TL4)."""
