package io.brisk.lettuce.testkit;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A real server process with its own port and an empty working directory; {@link #close()} stops it.
 */
public final class Server implements AutoCloseable {

    /** The environment variable with the path of a Brisk server. */
    public static final String BRISK_ENVIRONMENT = "BRISK_SERVER_BIN";

    private static final long START_MS_MAX = 20_000;

    private static final long STOP_MS_MAX = 20_000;

    private static final int PORT_MIN = 10_000;

    private static final int PORT_MAX = 20_000;

    private static final int PORT_ATTEMPTS_MAX = 1_000;

    private final Kind kind;

    private final Process process;

    private final int port;

    private final Path folder;

    /** The server program. */
    public enum Kind {

        /** Redis. */
        REDIS,

        /** Brisk. */
        BRISK;

        /** Returns the kinds that can be started here; prints which one is missing and why. */
        public static List<Kind> available() {
            List<Kind> kinds = new ArrayList<>();
            kinds.add(REDIS);
            String program = System.getenv(BRISK_ENVIRONMENT);
            if (program == null || program.isEmpty()) {
                System.out.println("Brisk is not tested: the environment variable " + BRISK_ENVIRONMENT + " is not set");
            } else if (!Files.isExecutable(Path.of(program))) {
                throw new IllegalStateException(BRISK_ENVIRONMENT + " is not a program: " + program);
            } else {
                kinds.add(BRISK);
            }
            return kinds;
        }

        private String program() {
            return this == REDIS ? "redis-server" : System.getenv(BRISK_ENVIRONMENT);
        }
    }

    private Server(Kind kind, Process process, int port, Path folder) {
        this.kind = kind;
        this.process = process;
        this.port = port;
        this.folder = folder;
    }

    /** Starts a server on a free port and waits until it replies. */
    public static Server start(Kind kind, String... options) {
        return start(kind, freePort(), options);
    }

    /** Starts a server on a port and waits until it replies. */
    public static Server start(Kind kind, int port, String... options) {
        try {
            Path folder = Files.createTempDirectory("lanes-" + kind.name().toLowerCase());
            List<String> command = new ArrayList<>(List.of(kind.program(), "--port", Integer.toString(port), "--bind",
                    "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder.toString()));
            command.addAll(List.of(options));
            Process process = new ProcessBuilder(command).redirectErrorStream(true)
                    .redirectOutput(folder.resolve("log").toFile()).start();
            Server server = new Server(kind, process, port, folder);
            Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
            server.awaitAnswer();
            return server;
        } catch (IOException e) {
            throw new IllegalStateException("The server " + kind + " could not be started", e);
        }
    }

    /**
     * Returns a port without a listener, below the range of ephemeral ports. Otherwise a client that reconnects to a stopped
     * server could reach another client's socket, or its own.
     */
    public static int freePort() {
        for (int attempt = 0; attempt < PORT_ATTEMPTS_MAX; attempt++) {
            int port = ThreadLocalRandom.current().nextInt(PORT_MIN, PORT_MAX);
            try (ServerSocket socket = new ServerSocket(port)) {
                return socket.getLocalPort();
            } catch (IOException e) {
                // The port is in use.
            }
        }
        throw new IllegalStateException("No port is free from " + PORT_MIN + " to " + PORT_MAX);
    }

    private void awaitAnswer() throws IOException {
        Await.until("the server replies on port " + port, START_MS_MAX, () -> {
            if (!process.isAlive()) {
                throw new IllegalStateException("The server exited at once: " + log());
            }
            return answers();
        });
    }

    private boolean answers() {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("127.0.0.1", port), 1000);
            socket.setSoTimeout(1000);
            socket.getOutputStream().write("PING\r\n".getBytes(StandardCharsets.US_ASCII));
            int first = socket.getInputStream().read();
            // An error counts as a reply, for example if a password is required.
            return first == '+' || first == '-';
        } catch (IOException e) {
            return false;
        }
    }

    private String log() {
        try {
            return Files.readString(folder.resolve("log"));
        } catch (IOException e) {
            return e.toString();
        }
    }

    public Kind kind() {
        return kind;
    }

    public int port() {
        return port;
    }

    public long pid() {
        return process.pid();
    }

    /**
     * Stops the server with SHUTDOWN, and waits until it has exited. It stops listening before it closes its connections, so
     * clients that reconnect are refused. A killed process may close its connections first.
     */
    public void shutDown() {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.getOutputStream().write("SHUTDOWN NOSAVE\r\n".getBytes(StandardCharsets.US_ASCII));
            Await.until("the server has exited", STOP_MS_MAX, () -> !process.isAlive());
        } catch (IOException e) {
            throw new IllegalStateException("The server " + kind + " could not be stopped", e);
        }
    }

    /** Kills the process; its connections break. */
    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
            try (Stream<Path> files = Files.walk(folder)) {
                for (Path path : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.deleteIfExists(path);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            throw new IllegalStateException("The directory of a server could not be removed", e);
        }
    }

    @Override
    public String toString() {
        return kind + " on port " + port;
    }
}
