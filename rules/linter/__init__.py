"""The linter itself (TL0): found by the checker, declared here for their pages and their selection."""
