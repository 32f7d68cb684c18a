"""What speaks against running a shell command line."""
