"""The feed: everything a watcher may want to know, collected from every room of the daemon."""
