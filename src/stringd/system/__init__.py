"""The operating system: files, processes, environments, keyring, clock. Standard library only."""
