"""Built-in plugins, registered by entry points like all others."""
