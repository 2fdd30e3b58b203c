"""`timed-without-synchronize` (TL806): the rule, and what only it asks of the model."""
