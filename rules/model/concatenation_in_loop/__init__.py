"""`concatenation-in-loop` (TL411): the rule, and what only it asks of the model."""
