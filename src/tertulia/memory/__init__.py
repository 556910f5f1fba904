"""Memory: facts about people, and episodes, each with the messages that it comes from."""
