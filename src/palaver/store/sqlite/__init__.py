"""All that is particular to SQLite: connections, the writer thread, locks."""
