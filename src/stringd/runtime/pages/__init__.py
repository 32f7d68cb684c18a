"""Loading and showing documents."""
