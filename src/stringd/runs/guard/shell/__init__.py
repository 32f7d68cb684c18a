"""What a shell command line would run, read without running it."""
