"""The model port, and the models that plug into it."""
