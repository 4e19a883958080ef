"""redis-py, as tests/contracts/README.md describes it: contract.py SHAPE PORT..."""

import sys
import time

import redis
from redis.backoff import ConstantBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry
from redis.sentinel import Sentinel

KEPT, LOCK, CHANNEL, COUNTER = "{contract}:kept", "{contract}:lock", "{contract}:news", "{contract}:counter"
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
SHAPE, PORTS = sys.argv[1], [int(port) for port in sys.argv[2:]]
OPTIONS = {"decode_responses": True, "socket_timeout": 5}


def client():
    """A client of the shape. Of replicas the one whose role is master."""
    if SHAPE == "cluster":
        return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port) for port in PORTS], **OPTIONS)
    if SHAPE == "sentinel":
        return Sentinel([("127.0.0.1", port) for port in PORTS], socket_timeout=5).master_for("mymaster", **OPTIONS)
    for port in PORTS:
        found = redis.Redis(port=port, retry=Retry(ConstantBackoff(0.1), 20 if SHAPE == "single" else 0), **OPTIONS)
        try:
            if found.role()[0] == "master":
                return found
        except redis.RedisError:
            continue
    raise redis.ConnectionError("no master answers")


def until(what, seconds=30):
    """Tries until there is a result, whatever fails meanwhile."""
    end = time.monotonic() + seconds
    while True:
        try:
            if (result := what()) not in (None, False):
                return result
        except redis.RedisError:
            if time.monotonic() > end:
                raise
        if time.monotonic() > end:
            raise TimeoutError("not within 30 s")
        time.sleep(0.05)


class Contract:
    def __init__(self):
        self.client = None

    def connect(self):
        self.client = client()
        assert self.client.ping()
        self.client.delete(KEPT, LOCK, COUNTER)

    def acquire(self, key, token):
        return bool(self.client.set(key, token, nx=True, px=60_000))

    def release(self, key, token):
        return self.client.register_script(RELEASE)(keys=[key], args=[token])

    def lock(self):
        assert self.acquire(KEPT, "one") and not self.acquire(KEPT, "two")
        assert self.release(KEPT, "two") == 0
        assert self.acquire(LOCK, "one") and self.release(LOCK, "one") == 1

    def message(self, text):
        """A message that arrives on the subscription, which is sent until it does."""

        def received():
            self.client.publish(CHANNEL, text)
            message = self.subscription.get_message(timeout=0.2)
            return message and message["data"] == text

        until(received)

    def pubsub(self):
        self.subscription = self.client.pubsub(ignore_subscribe_messages=True)
        self.subscription.subscribe(CHANNEL)
        self.message("before")

    def pipeline(self):
        pipeline = self.client.pipeline(transaction=False)
        for _ in range(100):
            pipeline.incr(COUNTER)
        assert pipeline.execute() == list(range(1, 101))

    def script(self):
        self.client.script_flush()
        assert self.acquire(LOCK, "one") and self.release(LOCK, "one") == 1

    def reconnect(self):
        def answers():
            if SHAPE == "replicas":
                self.client = client()
            return self.client.set(COUNTER, 1)

        until(answers)

    def kept(self):
        assert not self.acquire(KEPT, "two") and self.release(KEPT, "one") == 1

    def relock(self):
        assert self.acquire(KEPT, "two") and self.release(KEPT, "two") == 1

    def resubscribe(self):
        if SHAPE != "single":  # the subscription stays at the server on which it was made
            self.pubsub()
        self.message("after")


def main():
    contract = Contract()
    for step in ["connect", "lock", "pubsub", "pipeline", "script", "fail", "reconnect", "kept", "relock", "resubscribe"]:
        begin = time.monotonic()
        try:
            if step == "fail":
                print("ready", flush=True)
                sys.stdin.readline()
            else:
                getattr(contract, step)()
                print(f"{step} ok {(time.monotonic() - begin) * 1000:.0f} ms", flush=True)
        except Exception as error:  # whatever it is, it is the outcome of the step
            print(f"{step} failed: {type(error).__name__} {error}".replace("\n", " "), flush=True)
            sys.exit(1)


main()
