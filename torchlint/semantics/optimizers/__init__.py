"""What only the rules about optimizers ask."""
