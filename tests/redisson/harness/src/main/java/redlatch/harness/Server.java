package redlatch.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The server under test: independent masters on free ports, without persistence. Under {@code redlatch run} it is the server that
 * {@code redlatch run} has started, with the same clock.
 *
 * <p>Redlatch serves all ports from one process; other servers need a process per port.
 */
public final class Server implements AutoCloseable {

    private static final Path BINARY = Path.of(System.getProperty("server.binary")).toAbsolutePath().normalize();
    private static final boolean MANY_PORTS = BINARY.getFileName().toString().startsWith("redlatch");
    private static final String BESIDE = System.getenv("REDLATCH_PORT");
    private static final int ATTEMPTS = 5;

    private final List<Process> processes = new ArrayList<>();
    private final List<Integer> ports;
    private final Thread onExit = new Thread(this::kill);

    /** Starts one node, with command-line options of redis-server. */
    public static Server start(String... options) {
        return start(1, options);
    }

    public static Server start(int nodes, String... options) {
        if (BESIDE != null) {
            if (nodes != 1 || options.length > 0) {
                throw new IllegalStateException("redlatch run has one node, with the options that it was given");
            }
            return new Server(List.of(Integer.valueOf(BESIDE)));
        }
        for (int attempt = 1; ; attempt++) {
            Server server = new Server(freePorts(nodes));
            try {
                server.launch(options);
                return server;
            } catch (IllegalStateException e) {  // another process may have taken the port in between
                server.close();
                if (attempt == ATTEMPTS) {
                    throw e;
                }
            }
        }
    }

    private Server(List<Integer> ports) {
        this.ports = ports;
        Runtime.getRuntime().addShutdownHook(onExit);
    }

    public int port() {
        return port(0);
    }

    public int port(int node) {
        return ports.get(node);
    }

    /** Opens a connection that bypasses Redisson. */
    public Resp connect() {
        return new Resp(port());
    }

    @Override
    public void close() {
        kill();
        Runtime.getRuntime().removeShutdownHook(onExit);
    }

    private void kill() {
        processes.forEach(Process::destroyForcibly);
        processes.forEach(process -> process.onExit().join());
    }

    private void launch(String... options) {
        if (MANY_PORTS) {
            launch(ports, options);
        } else {
            ports.forEach(port -> launch(List.of(port), options));
        }
    }

    private void launch(List<Integer> ports, String... options) {
        List<String> command = new ArrayList<>(List.of(BINARY.toString(), "--save", "", "--appendonly", "no"));
        ports.forEach(port -> command.addAll(List.of("--port", port.toString())));
        command.addAll(List.of(options));
        Path log = Path.of("target", "servers", ports.get(0) + ".log");
        try {
            Files.createDirectories(log.getParent());
            Process process =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
            processes.add(process);
            ports.forEach(port -> awaitReady(process, port, log));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot start " + command, e);
        }
    }

    private static void awaitReady(Process process, int port, Path log) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (process.isAlive() && System.nanoTime() < deadline) {
            try (Resp resp = new Resp(port)) {
                resp.call("PING");
                return;
            } catch (Resp.Error e) {  // the server answers, even if it needs a password first
                if (e.getMessage().startsWith("NOAUTH")) {
                    return;
                }
            } catch (UncheckedIOException notYet) {
                LockSupport.parkNanos(500_000);
            }
        }
        throw new IllegalStateException("no PONG from " + BINARY + " on port " + port + ", it said:\n" + read(log));
    }

    private static String read(Path log) {
        try {
            return Files.readString(log);
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static List<Integer> freePorts(int count) {
        List<ServerSocket> sockets = new ArrayList<>();
        try {
            for (int i = 0; i < count; i++) {
                sockets.add(new ServerSocket(0));
            }
            return sockets.stream().map(ServerSocket::getLocalPort).toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } finally {
            for (ServerSocket socket : sockets) {
                try {
                    socket.close();
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }
        }
    }
}
