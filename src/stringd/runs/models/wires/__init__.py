"""The two forms in which providers are asked: what is sent, and how their streams are read."""
