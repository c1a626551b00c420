"""Who hears of a partition's next change."""

from logkernel.partition.news import News


class Reader:
    def __init__(self, name: str, told: list[str]) -> None:
        self.name, self.told = name, told

    def on_news(self) -> None:
        self.told.append(self.name)


def test_each_reader_is_told_once_in_the_order_of_subscription():
    told: list[str] = []
    news = News()
    readers = [Reader(name, told) for name in "bac"]
    for reader in readers:
        news.subscribe(reader)
    news.tell()
    news.tell()
    assert told == ["b", "a", "c"]
    assert len(news) == 0


def test_a_reader_that_left_is_not_told():
    told: list[str] = []
    news = News()
    one, two = Reader("one", told), Reader("two", told)
    news.subscribe(one)
    news.subscribe(two)
    news.unsubscribe(one)
    news.unsubscribe(one)
    news.tell()
    assert told == ["two"]


def test_a_reader_that_subscribes_while_it_is_told_hears_of_the_change_after():
    news = News()
    told: list[str] = []

    class Again(Reader):
        def on_news(self) -> None:
            super().on_news()
            news.subscribe(self)

    news.subscribe(Again("again", told))
    news.tell()
    assert told == ["again"]
    news.tell()
    assert told == ["again", "again"]
