"""Built-in authorizers."""
