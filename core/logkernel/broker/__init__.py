"""The shell of one broker. Everything in it that decides is a pure machine of another room; here they are run.

From above, each part importing only what stands below it (import-linter holds this):

    serve, commands                       an event loop round a broker; what its control socket can be asked
    build                                 from settings to a broker
    broker                                builds, starts and closes the parts, carries out the controller's effects
    router, configured_topics,            who answers which request; the topics that the broker's file names;
      missing_plugins                     those whose plugins are not there
    handlers/                             the core's own answers, a module a family
    service_host/, verifications          services and their shards; transactional writes that wait for a coordinator
    cleaner, moves, scheduler             rewrites; logs on their way to another directory; what is done by the clock
    retention                             what policies drop
    cleanup_policies                      the plugins that plan both, and the facts that they plan by
    cluster                               what services and handlers may ask of the cluster
    replicas/, metadata_manager,          partitions that are served or offline; the cluster's metadata;
      log_manager                         the logs on their directories. None of the three knows another
    turn, metadata_log, quotas/           what a turn still has to do; the log of the metadata; clients' quotas
    purgatory                             requests that wait
    runtime                               time, chance, threads, plugins, the settings in force
    timers, workers, fetch_sessions,      leaves
      control_socket, can_listen
"""
