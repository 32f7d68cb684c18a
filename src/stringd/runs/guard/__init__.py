"""What agents may touch: decided outside the model, by policy and by the human."""
