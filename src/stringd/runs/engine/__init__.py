"""Executing runs: segments, flows, prompts to the human, limits."""
