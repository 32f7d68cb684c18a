"""The approval gate: validate, display, decide, execute, audit. Standard library only."""
