"""Who a peer is, and what protects the way to it: TLS, SASL and their settings, for clients and listeners.

No module here opens a connection to a broker or a client: a transport moves the bytes (decision 057).
"""
