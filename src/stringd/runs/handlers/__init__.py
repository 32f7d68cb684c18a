"""Requests of clients of runs, one module a family."""
