"""Retrieval of messages: the index, queries, and the ranking of results."""
