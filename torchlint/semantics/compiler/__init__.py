"""What only the rules about the compiler ask."""
