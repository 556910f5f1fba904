"""The inspector: what a bot did, why, and what it cost, read from a store by any process."""
