"""`attention-weights-unused` (TL403): the rule, and what only it asks of the model."""
