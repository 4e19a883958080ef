"""Servers in the shapes that suites and contracts need, as Redlatch has them in one process and redis-server in many."""

import random
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REDLATCH = ROOT / "target/release/redlatch"
ORACLES = ROOT / "target/oracles"
MASTER = "mymaster"
# How long a node is silent before clusters and sentinels count it as down.
NODE_TIMEOUT_MS = 1000


class Refused(Exception):
    """An error reply."""


def is_redlatch(binary):
    return Path(binary).resolve().name.startswith("redlatch")


def free_ports(count):
    """Ports that follow one another. A redis-server in cluster mode takes the ports 10,000 above too; none of them is one of the
    ports from 32,768 that clients get."""
    for first in random.sample(range(11_000, 20_000, 20), 400):
        held = []
        try:
            for offset in range(count):
                held += [socket.create_server(("127.0.0.1", first + bus + offset)) for bus in (0, 10_000)]
            return list(range(first, first + count))
        except OSError:
            continue
        finally:
            for server in held:
                server.close()
    raise OSError(f"no {count} free ports follow one another")


def read_reply(stream):
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the server has closed the connection")
    kind, text = line[:1], line[1:-2].decode()
    if kind == b"-":
        raise Refused(text)
    if kind == b":":
        return int(text)
    if kind == b"$":
        return None if text == "-1" else stream.read(int(text) + 2)[:-2].decode(errors="replace")
    if kind == b"*":
        return None if text == "-1" else [read_reply(stream) for _ in range(int(text))]
    return text


def ask(port, *words):
    """The reply to one command, on a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as server:
        encoded = [str(word).encode() for word in words]
        server.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
        return read_reply(server.makefile("rb"))


def wait_until(what, condition, seconds=30):
    """Returns as soon as a condition holds. Errors of a server that is not ready count as not yet."""
    end = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (OSError, Refused):
            pass
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def fields(reply):
    """An INFO text, or names and values in turn, as a dictionary."""
    if isinstance(reply, str):
        return dict(line.split(":", 1) for line in reply.splitlines() if ":" in line)
    return dict(zip(reply[::2], reply[1::2]))


class Servers:
    """Servers of one shape on ports that follow one another.

    A shape is one of `--topology`, or `cluster-nodes:N` for N nodes in cluster mode that do not know one another.
    """

    def __init__(self, binary, shape, ports=None, release=None, directory=None, options=()):
        self.binary, self.shape, self.release, self.directory = Path(binary), shape, release, directory
        self.options = ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes", *options]
        self.kind, _, counts = shape.partition(":")
        self.parts = {
            "masters": lambda: ["master"] * int(counts),
            "replicas": lambda: ["master"] + ["replica"] * int(counts),
            "cluster-nodes": lambda: ["master"] * int(counts),
            "cluster": lambda: self.parts_of_cluster(*map(int, counts.split("x"))),
            "sentinel": lambda: self.parts_of_sentinels(*map(int, counts.replace("+", "x").split("x"))),
        }[self.kind]()
        self.ports = ports or free_ports(len(self.parts))
        self.processes = {}
        self.control = None

    @staticmethod
    def parts_of_cluster(masters, replicas):
        return ["master"] * masters + ["replica"] * masters * replicas

    @staticmethod
    def parts_of_sentinels(masters, replicas, sentinels):
        return ["master"] * masters + ["replica"] * replicas + ["sentinel"] * sentinels

    @property
    def sentinels(self):
        return [port for port, part in zip(self.ports, self.parts) if part == "sentinel"]

    @property
    def data_ports(self):
        return [port for port, part in zip(self.ports, self.parts) if part != "sentinel"]

    def __enter__(self):
        try:
            if is_redlatch(self.binary):
                self.start_redlatch()
            else:
                for node in range(len(self.ports)):
                    self.start_process(node)
                self.join()
            if self.kind == "sentinel":
                self.hasten_sentinels()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def run(self, node, command):
        with open(Path(self.directory) / f"{self.ports[node]}.log", "ab") as log:
            self.processes[node] = subprocess.Popen(command, cwd=self.directory, stdout=log, stderr=log)

    def start_redlatch(self):
        self.control = free_ports(len(self.ports) + 1)[-1]
        command = [self.binary.resolve(), "--control-port", str(self.control), *self.options]
        command += ["--redis-version", self.release] if self.release else []
        if self.kind == "cluster-nodes":
            command += ["--cluster-enabled", "yes"]
        else:
            command += ["--topology", self.shape]
        if self.kind.startswith("cluster"):
            command += ["--cluster-node-timeout", str(NODE_TIMEOUT_MS)]
        for port in self.ports:
            command += ["--port", str(port)]
        self.run(0, command)
        for port in self.ports:
            wait_until(f"{self.binary} answers", lambda port=port: ask(port, "PING") == "PONG")

    def start_process(self, node):
        """Starts one redis-server, also again after it has ended."""
        port = self.ports[node]
        command = [self.binary, "--port", str(port), "--dbfilename", f"{port}.rdb", *self.options]
        if self.kind.startswith("cluster"):
            command += ["--cluster-enabled", "yes", "--cluster-config-file", f"nodes-{port}.conf", "--cluster-node-timeout", str(NODE_TIMEOUT_MS)]
        if self.parts[node] == "replica" and self.kind != "cluster":
            command += ["--replicaof", "127.0.0.1", str(self.ports[0]), "--repl-diskless-sync-delay", "0"]
        if self.parts[node] == "sentinel":
            configuration = Path(self.directory) / f"sentinel-{port}.conf"
            if not configuration.exists():
                configuration.write_text(f"port {port}\nsentinel monitor {MASTER} 127.0.0.1 {self.ports[0]} {len(self.sentinels) // 2 + 1}\n")
            command = [self.binary, configuration, "--sentinel"]
        self.run(node, command)
        wait_until(f"{self.binary} answers", lambda: ask(port, "PING") == "PONG")

    def join(self):
        """Makes redis-servers a cluster, or waits until replicas and sentinels have found one another."""
        if self.kind == "cluster":
            self.join_cluster()
        replicas = sum(part == "replica" for part in self.parts)
        if self.kind in ("replicas", "sentinel"):
            for port in self.data_ports[1:]:
                wait_until("replicas have the data", lambda port=port: fields(ask(port, "INFO", "replication"))["master_link_status"] == "up")
        for port in self.sentinels:
            expected = {"num-slaves": str(replicas), "num-other-sentinels": str(len(self.sentinels) - 1)}
            wait_until("sentinels have found all", lambda port=port: expected.items() <= fields(ask(port, "SENTINEL", "MASTER", MASTER)).items())

    def join_cluster(self):
        masters = self.parts.count("master")
        names = [ask(port, "CLUSTER", "MYID") for port in self.ports]
        for node, port in enumerate(self.ports):
            ask(port, "CLUSTER", "SET-CONFIG-EPOCH", node + 1)
            if node < masters:
                ask(port, "CLUSTER", "ADDSLOTSRANGE", 16384 * node // masters, 16384 * (node + 1) // masters - 1)
            ask(port, "CLUSTER", "MEET", "127.0.0.1", self.ports[0])
        wait_until("all know all", lambda: all(all(name in ask(port, "CLUSTER", "NODES") for name in names) for port in self.ports))
        for node in range(masters, len(self.ports)):
            wait_until("a replica may follow", lambda node=node: ask(self.ports[node], "CLUSTER", "REPLICATE", names[node % masters]) == "OK")

        def is_joined(port):
            nodes = [line.split() for line in ask(port, "CLUSTER", "NODES").splitlines()]
            followers = sum("slave" in node[2] and node[7] == "connected" for node in nodes)
            return followers == len(self.ports) - masters and fields(ask(port, "CLUSTER", "INFO"))["cluster_state"] == "ok"

        wait_until("the cluster serves all slots", lambda: all(is_joined(port) for port in self.ports))
        for port in self.ports[masters:]:
            wait_until("replicas have the data", lambda port=port: fields(ask(port, "INFO", "replication"))["master_link_status"] == "up")

    def hasten_sentinels(self):
        """Sentinels elect after a second, not after half a minute."""
        for port in self.sentinels:
            ask(port, "SENTINEL", "SET", MASTER, "down-after-milliseconds", NODE_TIMEOUT_MS)
            ask(port, "SENTINEL", "SET", MASTER, "failover-timeout", 10 * NODE_TIMEOUT_MS)

    def stop(self, node, keep=True):
        """Ends a node as a crash does; with `keep` a single server has its data when it starts again."""
        if self.control:
            ask(self.control, "SIM.NODE", "STOP", node, "KEEP" if keep else "WIPE")
            return
        if keep and self.kind == "masters":
            ask(self.ports[node], "SAVE")
        self.processes[node].kill()
        self.processes[node].wait()

    def start(self, node):
        """Starts a node that was stopped."""
        if self.control:
            ask(self.control, "SIM.NODE", "START", node)
        else:
            self.start_process(node)


class Scratch(Servers):
    """Servers with a directory of their own, which goes with them."""

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.directory = self.scratch.name
        return super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        self.scratch.cleanup()
