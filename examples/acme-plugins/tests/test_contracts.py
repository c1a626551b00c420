"""Both plugins that decide keep their contracts."""

from typing import ClassVar

from logkernel.testing.contracts import ElectionContract, PartitionerContract


class TestGeo(PartitionerContract):
    name = "geo"


class TestGeoOfThree(PartitionerContract):
    name = "geo"
    settings: ClassVar = {"acme.geo.regions": "eu,us,ap"}


class TestRackFirst(ElectionContract):
    name = "rack_first"
