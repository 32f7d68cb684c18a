"""Everything that imports the model library."""
