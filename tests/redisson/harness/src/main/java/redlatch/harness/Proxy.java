package redlatch.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A TCP proxy between client and server. Cutting it makes each side appear dead to the other. */
public final class Proxy implements AutoCloseable {

    private final int target;
    private final ServerSocket listener;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();

    public Proxy(int target) {
        this.target = target;
        try {
            listener = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        daemon(this::accept);
    }

    public int port() {
        return listener.getLocalPort();
    }

    /** Closes all connections and refuses new ones. */
    public void cut() {
        quietly(listener);
        sockets.forEach(Proxy::quietly);
    }

    @Override
    public void close() {
        cut();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = open(listener.accept());
                Socket server = open(new Socket(InetAddress.getLoopbackAddress(), target));
                daemon(() -> copy(client, server));
                daemon(() -> copy(server, client));
            }
        } catch (IOException cut) {
            cut();
        }
    }

    private Socket open(Socket socket) throws IOException {
        socket.setTcpNoDelay(true);
        sockets.add(socket);
        if (listener.isClosed()) {  // cut() may just have run
            socket.close();
        }
        return socket;
    }

    private void copy(Socket from, Socket to) {
        try (from; to) {
            from.getInputStream().transferTo(to.getOutputStream());
        } catch (IOException closed) {
            // closed by either side, or by cut()
        } finally {
            sockets.remove(from);
            sockets.remove(to);
        }
    }

    private static void quietly(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static void daemon(Runnable body) {
        Thread thread = new Thread(body, "proxy");
        thread.setDaemon(true);
        thread.start();
    }
}
