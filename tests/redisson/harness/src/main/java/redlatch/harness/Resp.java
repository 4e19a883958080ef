package redlatch.harness;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

/**
 * A minimal RESP2 client, for MONITOR, PUBSUB, CONFIG and other commands that Redisson does not offer.
 *
 * <p>Strings hold one byte per character. Integers come as {@code Long}, nil as {@code null}, arrays as {@code List}.
 */
public final class Resp implements AutoCloseable {

    private static final int TIMEOUT_MS = 30_000;

    private final Socket socket;
    private final InputStream in;

    public Resp(int port) {
        try {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.setSoTimeout(TIMEOUT_MS);
            socket.setTcpNoDelay(true);
            in = new BufferedInputStream(socket.getInputStream());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Sends a command and returns its reply, unchecked as the caller's type. Throws an error reply. */
    public <T> T call(Object... words) {
        StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
        for (Object word : words) {
            String text = word.toString();
            request.append('$').append(text.length()).append("\r\n").append(text).append("\r\n");
        }
        try {
            socket.getOutputStream().write(request.toString().getBytes(ISO_8859_1));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return read();
    }

    /** Returns the next reply or pushed message. */
    @SuppressWarnings("unchecked")
    public <T> T read() {
        try {
            return (T) value();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Object value() throws IOException {
        String line = line();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+':
                return rest;
            case '-':
                throw new Error(rest);
            case ':':
                return Long.valueOf(rest);
            case '$': {
                int length = Integer.parseInt(rest);
                if (length < 0) {
                    return null;
                }
                byte[] bytes = in.readNBytes(length);
                line();
                return new String(bytes, ISO_8859_1);
            }
            case '*': {
                int length = Integer.parseInt(rest);
                if (length < 0) {
                    return null;
                }
                List<Object> values = new ArrayList<>(length);
                for (int i = 0; i < length; i++) {
                    values.add(value());
                }
                return values;
            }
            default:
                throw new IOException("not RESP2: " + line);
        }
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int b = in.read(); b != '\n'; b = in.read()) {
            if (b < 0) {
                throw new EOFException("the server closed the connection");
            }
            if (b != '\r') {
                line.write(b);
            }
        }
        return line.toString(ISO_8859_1);
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** An error reply. */
    public static final class Error extends RuntimeException {
        Error(String text) {
            super(text);
        }
    }
}
