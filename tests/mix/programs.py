"""The programs that use the locks of each library."""

import sys

import mix


def programs():
    """For each library what makes its command from a number of seconds and the ports of the nodes."""
    return {
        **{name: lambda seconds, ports, name=name: mix.java(name, seconds, *ports) for name in ["redisson", "shedlock", "spring"]},
        **{name: lambda seconds, ports, name=name: words(sys.executable, mix.HERE / "python" / "mix.py", name, seconds, *ports)
           for name in ["redis-py", "python-redis-lock", "pottery"]},
        "redsync": lambda seconds, ports: words(mix.HOME / "redsync", seconds, *ports),
        "node-redlock": lambda seconds, ports: words("node", mix.HOME / "node" / "mix.js", seconds, *ports),
    }


def words(*arguments):
    return [str(argument) for argument in arguments]
