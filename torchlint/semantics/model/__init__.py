"""What only the rules about models ask."""
