"""SQLite: connections, the writer and reader threads, locks."""
