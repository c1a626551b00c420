"""SASL mechanisms, both halves, without I/O: `mechanism` says what one is."""
