"""The daemon as a service of this account: started at login, restarted when it fails."""
