"""Taking over what Comma Agents keeps for a user."""
