"""One file per Kafka API: what is served at which version, and what deliberately is not."""
