"""The placement keeps the contract of placements, and to the weights."""

import random
from collections import Counter

import acme_weights

from logkernel.contracts import PlacementFacts
from logkernel.testing.contracts import PlacementContract


class TestWeights(PlacementContract):
    name = "weights"


def placed(brokers, partitions, factor):
    facts = PlacementFacts(partitions, factor, brokers, random.Random(1).randrange)
    return acme_weights.Weights().place(facts)


def test_leaders_and_replicas_follow_the_weights():
    rows = placed(((1, "a/4"), (2, "b/2"), (3, "b/2"), (4, "c/0")), 80, 2)
    assert Counter(row[0] for row in rows) == {1: 40, 2: 20, 3: 20}
    assert all(1 in row for row in rows), "the other zone has no other broker"


def test_a_broker_of_no_weight_helps_out_where_others_are_too_few():
    assert placed(((1, "a/4"), (2, "b/0")), 2, 2) == [[1, 2], [1, 2]]


def test_racks_without_weights_count_alike():
    rows = placed(((1, None), (2, "x/y"), (3, "z")), 30, 1)
    assert Counter(row[0] for row in rows) == {1: 10, 2: 10, 3: 10}
