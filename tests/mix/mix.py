"""What the runs with real libraries share: installation, programs, a server with several nodes."""

import re
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "target" / "mix"
HERE = Path(__file__).resolve().parent
PYTHON = ["redis==5.2.1", "python-redis-lock==4.0.0", "pottery==3.0.1"]


def install_java():
    maven = ["mvn", "--batch-mode", "--quiet", "compile", "dependency:build-classpath", f"-Dmdep.outputFile={HOME / 'classpath'}"]
    # Maven resets colours although it does not use any, so its output is only shown when it fails.
    built = subprocess.run(maven, cwd=HERE / "java", capture_output=True, text=True, check=False)
    if built.returncode != 0:
        sys.exit(built.stdout + built.stderr)


def install():
    """The libraries, each with its language's package manager."""
    HOME.mkdir(parents=True, exist_ok=True)
    site, node = HOME / "site", HOME / "node"
    if not site.exists():
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--root-user-action=ignore"]
        subprocess.run([*pip, "--target", site, *PYTHON], check=True)
    node.mkdir(exist_ok=True)
    for name in ["package.json", "mix.js"]:
        (node / name).write_bytes((HERE / "node" / name).read_bytes())
    if not (node / "node_modules").exists():
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=node, check=True)
    subprocess.run(["go", "build", "-o", HOME / "redsync", "."], cwd=HERE / "go", check=True)
    install_java()


def java(name, *arguments):
    """The command of a program in Java."""
    classpath = f"{HOME / 'java' / 'classes'}:{(HOME / 'classpath').read_text().strip()}"
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath, "mix.Mix", name, *map(str, arguments)]


class Server:
    """A server with several nodes, which ends with the block."""

    def __init__(self, binary, nodes, *options):
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(nodes)]
        self.ports = [server.getsockname()[1] for server in held]
        for server in held:
            server.close()
        self.command = [binary, *options, *(word for port in self.ports for word in ("--port", str(port)))]

    def __enter__(self):
        HOME.mkdir(parents=True, exist_ok=True)
        with open(HOME / "server.log", "wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        for port in self.ports:
            for _ in range(100):
                if socket.socket().connect_ex(("127.0.0.1", port)) == 0:
                    break
                time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, node, command):
        """The reply to a command: a status, or an array of texts."""
        with socket.create_connection(("127.0.0.1", self.ports[node]), timeout=60) as server:
            server.sendall(command.encode() + b"\r\n")
            stream = server.makefile("rb")
            head = stream.readline().decode().strip()
            if not head.startswith("*"):
                return head
            return [stream.read(int(stream.readline()[1:]) + 2)[:-2].decode(errors="replace") for _ in range(int(head[1:]))]


def binary(index):
    """The server's binary: an argument, or the release build."""
    return Path(sys.argv[index] if len(sys.argv) > index else ROOT / "target/release/redlatch").resolve()


def was_granted(output):
    return re.search(r"granted:? [1-9]", output) is not None
