"""`tensor-from-list-of-arrays` (TL108): the rule, and what only it asks of the model."""
