"""Strategy files: found, parsed, checked and turned into definitions."""
