"""Controls Redlatch from a test by SIM.* commands: injects faults, holds requests, moves the clock, stops nodes.

    with Control(6379) as control, control.fault("SCRIPT rlock.acquire NTH 1 DO DROP REPLY") as lost:
        ...                                   # the application locks, and its reply is lost
        lost.await_hits(1)

Methods that return a `Guard` undo their effect at the end of its `with` block. Times are in ms, nodes are numbered
from 0. A command is one string, split at spaces, or a list if an argument contains spaces. Needs the standard library
only.
"""

import socket
import time

PATIENCE_S = 20


class Refused(Exception):
    """Raised for an error reply; its text is the error."""


class Control:
    """A connection that sends SIM.* commands. Faults outlive the connection, gates do not."""

    def __init__(self, port, host="127.0.0.1"):
        self._socket = socket.create_connection((host, port), timeout=PATIENCE_S + 10)
        self._replies = self._socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._replies.close()
        self._socket.close()

    def call(self, command):
        """Sends a command and returns its reply: a `str` with one character per byte, an `int`, a `list` or `None`."""
        args = command.split() if isinstance(command, str) else command
        encoded = [str(arg).encode("latin-1") for arg in args]
        lines = [b"*%d\r\n" % len(encoded)] + [b"$%d\r\n%s\r\n" % (len(arg), arg) for arg in encoded]
        self._socket.sendall(b"".join(lines))
        return self._read()

    def _read(self):
        line = self._replies.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2].decode("latin-1")
        if kind == b"+":
            return rest
        if kind == b"-":
            raise Refused(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$" and int(rest) >= 0:
            return self._replies.read(int(rest) + 2)[:-2].decode("latin-1")
        if kind == b"*" and int(rest) >= 0:
            return [self._read() for _ in range(int(rest))]
        return None

    def reset(self):
        """Removes data, faults, gates and states; sets the clock to real time; makes all nodes running masters."""
        self.call("SIM.RUN RESET")
        self.call("SIM.CLOCK MODE REAL")

    def fault(self, rule):
        """Adds a fault rule: `<match> DO <action>`, the arguments of SIM.FAULT ADD."""
        return Fault(self, rule)

    def gate(self, gate):
        """Adds a gate: `<match> AT PRE|POST|PUSH`, the arguments of SIM.GATE ADD."""
        return Gate(self, gate)

    def stop_clock(self):
        """Stops the clock; only `advance` moves it."""
        return self._guarded("SIM.CLOCK MODE MANUAL", "SIM.CLOCK MODE REAL")

    def advance(self, ms):
        """Advances the clock by `ms`; keys expire and timers fire on the way."""
        self.call(f"SIM.CLOCK ADVANCE {ms}")

    def jump(self, node, ms):
        """Makes the wall clock of a node jump by `ms`; the guard makes it jump back."""
        return self._guarded(f"SIM.CLOCK JUMP {ms} NODE {node}", f"SIM.CLOCK JUMP {-ms} NODE {node}")

    def state(self, node, state):
        """Makes a node refuse requests as in a state of SIM.NODE STATE: OOM, LOADING, READONLY, BUSY, MAXCLIENTS,
        MASTERDOWN, NOREPLICAS, CLUSTERDOWN."""
        return self._guarded(f"SIM.NODE STATE {node} {state} ON", f"SIM.NODE STATE {node} {state} OFF")

    def pause(self, node):
        """Pauses a node: its requests and timers wait."""
        return self._guarded(f"SIM.NODE PAUSE {node}", f"SIM.NODE RESUME {node}")

    def stop(self, node, wipe=False):
        """Stops a node: it closes all connections and refuses new ones; with `wipe` it loses its data."""
        return self._guarded(f"SIM.NODE STOP {node} {'WIPE' if wipe else 'KEEP'}", f"SIM.NODE START {node}")

    def replicate(self, replica, master):
        """Makes a node a replica of another, with a full copy of its data."""
        self.call(f"SIM.NODE REPLICATE {replica} OF {master}")

    def cut_link(self, replica):
        """Stops replication to a replica until `restore_link`."""
        self.call(f"SIM.NODE LINK {replica} DOWN")

    def restore_link(self, replica):
        """Delivers all writes to a replica again."""
        self.call(f"SIM.NODE LINK {replica} UP")

    def promote(self, replica):
        """Makes a replica a master, with the data that has reached it."""
        self.call(f"SIM.NODE PROMOTE {replica}")

    def acknowledge(self, master, replicas):
        """Sets how many replicas WAIT counts on a master."""
        return self._guarded(f"SIM.NODE ACK {master} {replicas}", f"SIM.NODE ACK {master} REAL")

    def lose(self, key, node=0):
        """Removes a key without an event or a message. Returns whether it existed."""
        return self.call(["SIM.KEY", "LOSE", key, "NODE", node]) == 1

    def _guarded(self, do, undo):
        """Sends `do`, and returns a guard that sends `undo`."""
        self.call(do)
        return Guard(self, undo)


class Guard:
    """A change that is undone at the end of its `with` block."""

    def __init__(self, control, undo):
        self._control = control
        self._undo = undo

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.undo()

    def undo(self):
        self._control.call(self._undo)


class Fault(Guard):
    """An active fault rule."""

    def __init__(self, control, rule):
        rule = rule.split() if isinstance(rule, str) else rule
        self.id = control.call(["SIM.FAULT", "ADD", *rule])
        super().__init__(control, f"SIM.FAULT DEL {self.id}")

    def hits(self):
        """Returns a row for each time the rule applied: [event, connection, request, action]."""
        return self._control.call(f"SIM.FAULT HITS {self.id}")

    def await_hits(self, count):
        """Waits until the rule has applied `count` times."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.hits()) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the rule was applied {len(self.hits())} times in {PATIENCE_S} s, expected {count}")
            time.sleep(0.002)


class Gate(Guard):
    """Holds what matches, until it is released or the gate is removed."""

    def __init__(self, control, gate):
        gate = gate.split() if isinstance(gate, str) else gate
        self.id = control.call(["SIM.GATE", "ADD", *gate])
        super().__init__(control, f"SIM.GATE DEL {self.id}")

    def wait(self, count=1):
        """Waits until the gate holds `count` requests, replies or messages; returns their tickets."""
        held = self._control.call(f"SIM.GATE AWAIT {self.id} COUNT {count} TIMEOUT {PATIENCE_S * 1000}")
        if len(held) < count:
            raise TimeoutError(f"the gate holds {len(held)} items after {PATIENCE_S} s, expected {count}")
        return held

    def release(self, ticket=None):
        """Releases one ticket, or everything that the gate holds."""
        self._control.call(f"SIM.GATE RELEASE {ticket or self.id}")
