"""Where people talk: each platform brings messages in and replies out."""
