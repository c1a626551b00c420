"""OAUTHBEARER's tokens: where a client gets them, and how a server validates them."""
