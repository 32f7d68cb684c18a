"""`stringd top`: runs, topics, shells and what waits, live in a terminal."""
