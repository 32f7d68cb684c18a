"""Help for authors of apps: a first version to start from, and a view of it while they write."""
