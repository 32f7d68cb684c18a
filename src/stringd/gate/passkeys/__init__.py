"""Approving in a browser of this machine, by a passkey that was registered at the terminal."""
