"""What an agent of a strategy is and how it calls its model and tools."""
