"""What an app's action does when it is called."""
