"""Settings: Kafka's names, types, defaults and bounds, per broker and per topic.

`broker.BrokerConfig` is the way in; `definitions` says what each setting is; `topic.TopicSettings` is what the
hot path reads.
"""
