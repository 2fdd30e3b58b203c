"""What only the rules about several processes ask."""
