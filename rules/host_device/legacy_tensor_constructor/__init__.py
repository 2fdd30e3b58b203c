"""`legacy-tensor-constructor` (TL209): the rule, and what only it asks of the model."""
