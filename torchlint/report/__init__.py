"""A static site about many repositories: what is found in them, where, and how that changes over time.

Every repository is checked in a process of its own, and what is found is kept in a JSON record, so that one
that fails costs no other, and an interrupted run goes on where it was.
"""
