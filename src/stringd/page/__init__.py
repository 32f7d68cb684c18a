"""The page: files a browser loads, and nothing that runs here."""
