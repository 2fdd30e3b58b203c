"""`modules-in-plain-list` (TL409): the rule, and what only it asks of the model."""
