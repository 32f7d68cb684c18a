"""Text made to take long, and everything of ours that reads text of others."""
