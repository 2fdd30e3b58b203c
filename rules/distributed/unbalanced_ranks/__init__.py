"""`unbalanced-ranks` (TL711): the rule, and what only it asks of the model."""
