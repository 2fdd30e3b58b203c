"""What only the rules about the input pipeline ask."""
