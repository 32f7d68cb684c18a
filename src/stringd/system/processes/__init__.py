"""Processes this daemon starts: their table, their tree and what they leave behind."""
