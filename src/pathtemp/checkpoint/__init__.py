"""Runs that never lose work: their whole state in a file after every round, and back."""
