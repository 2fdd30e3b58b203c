"""What only the rules about upgrades ask."""
