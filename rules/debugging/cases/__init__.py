"""Bench cases: small programs that have what the rules of this family find. They need torch."""
