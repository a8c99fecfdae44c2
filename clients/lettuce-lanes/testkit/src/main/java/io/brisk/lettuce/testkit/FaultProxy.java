package io.brisk.lettuce.testkit;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A proxy between clients and a server that can cut connections, make them silent, and refuse new ones.
 */
public final class FaultProxy implements AutoCloseable {

    private final ServerSocket listener;

    private final int target;

    private final List<Link> links = new CopyOnWriteArrayList<>();

    private final AtomicInteger accepted = new AtomicInteger();

    private volatile boolean refusing;

    /** Creates a proxy to a local port, listening on a separate port. */
    public FaultProxy(int target) {
        this.target = target;
        try {
            this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        thread("accept", this::accept);
    }

    public int port() {
        return listener.getLocalPort();
    }

    /** Returns the open connections in the order of arrival. */
    public List<Link> links() {
        return List.copyOf(links);
    }

    /** Returns the number of connections accepted so far. */
    public int accepted() {
        return accepted.get();
    }

    /** Sets whether new connections are closed immediately or served. */
    public void refuse(boolean refuse) {
        refusing = refuse;
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                accepted.incrementAndGet();
                if (refusing) {
                    client.close();
                    continue;
                }
                client.setTcpNoDelay(true);
                Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
                server.setTcpNoDelay(true);
                Link link = new Link(client, server);
                links.add(link);
                thread("to server", () -> link.pump(client, server));
                thread("to client", () -> link.pump(server, client));
            } catch (IOException e) {
                // The listener was closed, or the server cannot be reached: the client sees its connection closed.
            }
        }
    }

    private static void thread(String name, Runnable body) {
        Thread thread = new Thread(body, "fault-proxy " + name);
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException e) {
            // The listener is closed either way.
        }
        links.forEach(Link::cut);
    }

    /** A connection through the proxy. */
    public final class Link {

        private final Socket client;

        private final Socket server;

        private volatile boolean silent;

        private Link(Socket client, Socket server) {
            this.client = client;
            this.server = server;
        }

        /** Closes both sides with a reset. */
        public void cut() {
            links.remove(this);
            for (Socket socket : new Socket[] { client, server }) {
                try {
                    socket.setSoLinger(true, 0);
                    socket.close();
                } catch (IOException e) {
                    // Already closed.
                }
            }
        }

        /** Drops all further bytes in both directions, without notifying either side. */
        public void silence() {
            silent = true;
        }

        private void pump(Socket from, Socket to) {
            byte[] buffer = new byte[64 * 1024];
            try {
                InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream();
                int length;
                while ((length = in.read(buffer)) >= 0) {
                    if (!silent) {
                        out.write(buffer, 0, length);
                    }
                }
            } catch (IOException e) {
                // One side has closed; the other follows.
            }
            cut();
        }
    }
}
