"""Names and arguments that releases of torch and its libraries gave up (TL9)."""
