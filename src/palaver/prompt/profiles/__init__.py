"""Our own profiles: each is one function from a `Context` to a `Prompt`. Pure."""
