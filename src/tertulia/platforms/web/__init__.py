"""The page: a server that shows what a bot did and why, and its JSON API. Read `page_server.py` first."""
