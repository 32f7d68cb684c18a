"""Finding, changing and restoring the user's text files."""
