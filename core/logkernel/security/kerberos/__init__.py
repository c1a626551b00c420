"""Kerberos, for the mechanism GSSAPI: tickets and contexts by the package `gssapi`, and names that a broker gives."""
