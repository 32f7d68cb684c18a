"""Tools agents call while they think, and the port behind which each one is."""
