"""Stages what real Redis leaves to luck, by the SIM.* commands of Redlatch: faults, gates, time and the state of nodes.

    with Control(6379) as control, control.fault("SCRIPT rlock.acquire NTH 1 DO DROP REPLY") as lost:
        ...                                   # the application locks, and does not hear of it
        lost.await_hits(1)

What a method returns is undone at the end of its `with`. Times are in ms, nodes are numbered from 0. A command is its
words, as one string to be split at blanks or as a list where a word has blanks of its own. Standard library only.
"""

import socket
import time

PATIENCE_S = 20


class Refused(Exception):
    """An error reply."""


class Control:
    """A connection that sends SIM.* commands. Faults outlive it, its gates do not."""

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

    def call(self, words):
        """Sends any command. Strings come as `str`, one character per byte, arrays as `list`, nil as `None`."""
        words = words.split() if isinstance(words, str) else words
        encoded = [str(word).encode("latin-1") for word in words]
        lines = [b"*%d\r\n" % len(encoded)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded]
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
        """No data, faults, gates or states are left, time is real, all nodes run and are masters."""
        self.call("SIM.RUN RESET")
        self.call("SIM.CLOCK MODE REAL")

    def fault(self, rule):
        """A rule: `<match> DO <action>`, as SIM.FAULT ADD has it."""
        return Fault(self, rule)

    def gate(self, gate):
        """A gate: `<match> AT PRE|POST|PUSH`, as SIM.GATE ADD has it."""
        return Gate(self, gate)

    def stop_clock(self):
        """Time stands still, but for `advance`."""
        return self._staged("SIM.CLOCK MODE MANUAL", "SIM.CLOCK MODE REAL")

    def advance(self, ms):
        """Time goes on; keys end and timers fire on the way."""
        self.call(f"SIM.CLOCK ADVANCE {ms}")

    def jump(self, node, ms):
        """The wall clock of a node jumps, and back."""
        return self._staged(f"SIM.CLOCK JUMP {ms} NODE {node}", f"SIM.CLOCK JUMP {-ms} NODE {node}")

    def state(self, node, state):
        """The node refuses requests: OOM, LOADING, READONLY, BUSY, MAXCLIENTS, MASTERDOWN, NOREPLICAS, CLUSTERDOWN."""
        return self._staged(f"SIM.NODE STATE {node} {state} ON", f"SIM.NODE STATE {node} {state} OFF")

    def pause(self, node):
        """Requests and timers of the node wait."""
        return self._staged(f"SIM.NODE PAUSE {node}", f"SIM.NODE RESUME {node}")

    def stop(self, node, wipe=False):
        """All connections end and new ones are refused; with `wipe` the data is lost."""
        return self._staged(f"SIM.NODE STOP {node} {'WIPE' if wipe else 'KEEP'}", f"SIM.NODE START {node}")

    def replicate(self, replica, master):
        self.call(f"SIM.NODE REPLICATE {replica} OF {master}")

    def cut_link(self, replica):
        """No more writes reach the replica, until it is told otherwise."""
        self.call(f"SIM.NODE LINK {replica} DOWN")

    def restore_link(self, replica):
        self.call(f"SIM.NODE LINK {replica} UP")

    def promote(self, replica):
        """The replica becomes a master, with the data that has reached it."""
        self.call(f"SIM.NODE PROMOTE {replica}")

    def acknowledge(self, master, replicas):
        """How many replicas WAIT counts."""
        return self._staged(f"SIM.NODE ACK {master} {replicas}", f"SIM.NODE ACK {master} REAL")

    def lose(self, key, node=0):
        """The key is gone without a word. Returns whether it was there."""
        return self.call(["SIM.KEY", "LOSE", key, "NODE", node]) == 1

    def _staged(self, do, undo):
        self.call(do)
        return Guard(self, undo)


class Guard:
    """What is undone at the end of a `with`."""

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
    """A rule at work."""

    def __init__(self, control, rule):
        rule = rule.split() if isinstance(rule, str) else rule
        self.id = control.call(["SIM.FAULT", "ADD", *rule])
        super().__init__(control, f"SIM.FAULT DEL {self.id}")

    def hits(self):
        """Each time it acted: [event, connection, request, what was done]."""
        return self._control.call(f"SIM.FAULT HITS {self.id}")

    def await_hits(self, count):
        deadline = time.monotonic() + PATIENCE_S
        while len(self.hits()) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"it acted {len(self.hits())} times, not {count}")
            time.sleep(0.002)


class Gate(Guard):
    """Holds what matches, until it is released or the gate is gone."""

    def __init__(self, control, gate):
        gate = gate.split() if isinstance(gate, str) else gate
        self.id = control.call(["SIM.GATE", "ADD", *gate])
        super().__init__(control, f"SIM.GATE DEL {self.id}")

    def wait(self, count=1):
        """Waits until it holds so many; returns their tickets."""
        held = self._control.call(f"SIM.GATE AWAIT {self.id} COUNT {count} TIMEOUT {PATIENCE_S * 1000}")
        if len(held) < count:
            raise TimeoutError(f"the gate holds {len(held)} and not {count}")
        return held

    def release(self, ticket=None):
        """Lets one go, or all."""
        self._control.call(f"SIM.GATE RELEASE {ticket or self.id}")
