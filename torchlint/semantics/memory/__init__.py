"""What only the rules about memory ask."""
