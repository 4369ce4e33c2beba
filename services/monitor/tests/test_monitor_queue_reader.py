from snavio.aws.memory.clock import ManualClock
from snavio.aws.memory.queues import MemoryQueues
from snavio.monitor.queue_reader import QueueReader
from snavio.wire.names import Names


class Clients:
    """SQS and CloudWatch as far as the reader asks them."""

    def __init__(self, depths):
        self._depths = depths
        self.ages_asked = []

    async def client(self, service):
        return self

    async def get_queue_attributes(self, **asked):
        waiting, in_flight = self._depths[asked["QueueUrl"].rpartition("/")[2]]
        depths = zip(asked["AttributeNames"], (waiting, in_flight, 0), strict=True)
        return {"Attributes": {name: str(depth) for name, depth in depths}}

    async def get_metric_data(self, **asked):
        queries = asked["MetricDataQueries"]
        self.ages_asked += [query["MetricStat"]["Metric"]["Dimensions"][0]["Value"] for query in queries]
        return {"MetricDataResults": [{"Id": query["Id"], "Values": [7.0]} for query in queries]}


async def test_ages_are_asked_and_paid_for_only_where_something_waits():
    names = Names(region="us-east-1")
    clients = Clients({"empty": (0, 0), "waiting": (3, 0), "in-hand": (0, 2)})
    queues = MemoryQueues(ManualClock())
    arns = [names.queue_arn(name) for name in ("empty", "waiting", "in-hand")]
    for name in ("empty", "waiting", "in-hand"):
        queues.create(name)
    found = await QueueReader(clients.client, queues, names, with_ages=True).read(arns, now=1000.0)
    assert [found[arn].oldest_seconds for arn in arns] == [None, 7.0, 7.0]
    assert sorted(clients.ages_asked) == ["in-hand", "waiting"]


async def test_no_call_is_made_for_ages_when_every_queue_is_empty():
    names = Names(region="us-east-1")
    clients = Clients({"empty": (0, 0)})
    queues = MemoryQueues(ManualClock())
    queues.create("empty")
    await QueueReader(clients.client, queues, names, with_ages=True).read([names.queue_arn("empty")], 1000.0)
    assert clients.ages_asked == []
