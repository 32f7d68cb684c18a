"""Clients of the three wires."""
