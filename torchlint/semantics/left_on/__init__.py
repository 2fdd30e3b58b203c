"""What only the rules about aids that are left on ask."""
