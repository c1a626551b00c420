"""A broker for tests of programs that talk to Kafka (decision 050).

kafka        `Kafka`: what a test holds
clock        time that the test moves
watched      the transport "tcp" with a machine for each connection that shows the test what clients ask
requests     what clients asked
records      what lies in topics
matching     pure: does a record match, and where does it not
"""
