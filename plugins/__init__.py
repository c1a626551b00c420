"""Built-in plugins, registered by entry points as any stranger's are."""
