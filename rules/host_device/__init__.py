"""Synchronisation and traffic between host and device (TL2)."""
