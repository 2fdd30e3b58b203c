"""What only the rules about autograd ask."""
