"""Coding agents people already have, over the Agent Client Protocol."""
