"""Cleaning of replies: our own markup never reaches people."""
