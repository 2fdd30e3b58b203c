"""What a run found, as text: one module an output format, each a pure function of a `Report`."""
