"""Histories of clients, and what is wrong with them: records lost or doubled, orders and transactions broken.

    history = History()                               anything that drives clients writes one
    number = history.call("send", "p1", topic="t", partition=0, value="a")
    history.ok(number, offset=7)                      or `fail`, or `unknown`
    check(history)                                    → anomalies; none is good

    check(load(open("run.jsonl")))                    a history that other programs recorded
    logkernel history check run.jsonl                 the same from a shell

The checker knows calls and outcomes only, no broker: it judges simulations and clusters of real processes alike.

A file has one JSON object a line, in the order in which things happened. A line is a call, the outcome of one, or a
fact. A call without an outcome has an unknown one. Values are texts; each `send` has a value of its own, unless it
repeats what an aborted transaction sent.

| line | other fields | of an `ok` outcome |
|---|---|---|
| `{"call": "send", "id": 1, "client": "p1"}` | topic, partition, value; key, acks, once, txn | offset |
| `"call": "begin"` | | |
| `"call": "end"` | txn, commit; group, offsets | |
| `"call": "poll"` | group, isolation | records |
| `"call": "assign"` | partitions; group | |
| `"call": "commit"` | group, offsets | |
| `"call": "read"` | topic, partition, isolation | start, end, records |
| `"call": "delete_records"` | topic, partition, before | |
| `"call": "delete_topic"` | topic | |
| `{"ok": 1}`, `{"fail": 1}`, `{"unknown": 1}` | error | |
| `{"topic": "t"}` | compacts, expires | |
| `{"lawful": ["t", 0, 7]}` | why | |

- `send`: `acks` is "all" (the default), "1" or "0"; `once` (true by default) says that the producer is idempotent or
  transactional; `txn` is the id of its `begin`. `fail` means that the record was certainly not written. The
  offset of its `ok` is -1 where the broker told none (DUPLICATE_SEQUENCE_NUMBER).
- `end` ends the transaction `txn`, by a commit where `commit` is true, with `offsets` of `group` that are part of it.
- `poll` gave `records`: [topic, partition, offset, value] each. `isolation` is "read_uncommitted" (the default) or
  "read_committed".
- `assign`: from now on the client reads these `partitions`, [topic, partition] each, and no others. With a `group` it
  begins where the group's offsets say, or at the log start.
- `offsets` are [topic, partition, offset] each.
- `read` read a partition from its log start to its end when everything was over: what it did not find is lost.
- `compacts`: of records with one key only the last has to stay. `expires`: the oldest records may go.
- `lawful`: of what was written before this line, what lies at this offset and behind it may be lost; the recorder
  knows why, e.g. an unclean election. In `__consumer_offsets` it frees groups from what they committed, in
  `__transaction_state` transactions from how they ended.
"""

from __future__ import annotations

from logkernel.testing.history.check import Anomaly, check
from logkernel.testing.history.operations import History, Operation, load

__all__ = ["Anomaly", "History", "Operation", "check", "load"]
