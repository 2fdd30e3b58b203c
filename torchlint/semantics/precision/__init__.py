"""What only the rules about precision ask."""
