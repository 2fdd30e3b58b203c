"""Rules for what was switched on to look for an error, and never off again."""
