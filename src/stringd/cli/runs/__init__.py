"""`stringd run`, `runs` and `strategies`."""
