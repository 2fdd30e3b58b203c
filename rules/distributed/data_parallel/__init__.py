"""`data-parallel` (TL701): the rule, and what only it asks of the model."""
