"""Uses the locks of a Python library from several threads for a while, and prints how often each was granted.

    mix.py redis-py|python-redis-lock|pottery SECONDS PORT...
"""

import logging
import random
import sys
import threading
import time

import redis

logging.disable(logging.CRITICAL)
library, seconds, *ports = sys.argv[1:]
ports = [int(port) for port in ports]
END = time.monotonic() + float(seconds)
granted, failed = {}, {}
counting = threading.Lock()


def count(counts, name):
    with counting:
        counts[name] = counts.get(name, 0) + 1


def redis_py(dice, client):
    """redis-py's own: with a time limit, extended and acquired anew, and once in a while held beyond it."""
    overruns = dice.random() < 0.05
    lock = client.lock("mix:redis-py", timeout=0.003 if overruns else 2, blocking_timeout=0.1, sleep=0.005)
    if not lock.acquire():
        return None
    time.sleep(dice.random() * 0.006)
    try:
        if dice.random() < 0.2:
            lock.extend(1)
        if dice.random() < 0.2:
            lock.reacquire()
        lock.release()
    except redis.exceptions.LockNotOwnedError:
        assert overruns
    return "lock"


def python_redis_lock(dice, client):
    """Blocks on a list that a release pushes to; renewed by a thread, or extended by hand."""
    import redis_lock

    way = dice.choice(["plain", "extended", "renewed", "blocking"])
    lock = redis_lock.Lock(client, f"mix-{way}", expire=1 if way == "renewed" else 2, auto_renewal=way == "renewed")
    if not lock.acquire(blocking=way == "blocking", timeout=1 if way == "blocking" else None):
        time.sleep(0.001)
        return None
    time.sleep(1.2 if way == "renewed" and dice.random() < 0.05 else dice.random() * 0.006)
    if way == "extended":
        lock.extend(expire=3)
    lock.release()
    return way


def pottery(dice, client):
    """A RedLock of the three masters."""
    from pottery import Redlock

    lock = Redlock(key="stock", masters=pottery.masters, auto_release_time=2)
    if not lock.acquire(blocking=False):
        time.sleep(0.005)
        return None
    time.sleep(dice.random() * 0.006)
    if dice.random() < 0.2:
        lock.extend()
    lock.release()
    return "redlock"


def work(use, seed):
    dice = random.Random(seed)
    client = redis.Redis(port=ports[0])
    while time.monotonic() < END:
        try:
            name = use(dice, client)
            if name:
                count(granted, name)
        except Exception as error:
            count(failed, repr(error))


pottery.masters = {redis.Redis(port=port) for port in ports}
use = {"redis-py": redis_py, "python-redis-lock": python_redis_lock, "pottery": pottery}[library]
threads = [threading.Thread(target=work, args=(use, seed)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for name, times in sorted(granted.items()):
    print(f"{library} {name}: granted {times}")
for why, times in sorted(failed.items()):
    print(f"{library} failed {times} times: {why}")
