"""`tensor-copies-array` (TL109): the rule, and what only it asks of the model."""
