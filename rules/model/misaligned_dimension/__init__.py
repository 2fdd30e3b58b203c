"""`misaligned-dimension` (TL415): the rule, and what only it asks of the model."""
