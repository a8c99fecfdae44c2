package io.brisk.lettuce;

import io.lettuce.core.CommandListenerWriter;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.protocol.CommandExpiryWriter;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.DefaultEndpoint;
import io.lettuce.core.protocol.RedisCommand;
import java.net.SocketAddress;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;

/**
 * One of the real connections, its writer, and the books about it.
 */
final class RealLane<K, V> implements LaneHealth, RedisConnectionStateListener {

    private final int index;

    private final StatefulRedisConnection<K, V> connection;

    private final RedisChannelHandler<K, V> handler;

    private final RedisChannelWriter writer;

    private final boolean counting;

    private final AtomicLong pending = new AtomicLong();

    private final AtomicLong busyNanos = new AtomicLong();

    /** When the first of the pending commands came; 0 while there are none. */
    private final AtomicLong busySince = new AtomicLong();

    private final AtomicLong reconnects = new AtomicLong();

    /** One object for all commands, so that counting one allocates no closure. */
    private final BiConsumer<Object, Throwable> answered = (ignored, error) -> answered();

    @SuppressWarnings("unchecked")
    RealLane(int index, StatefulRedisConnection<K, V> connection, boolean counting) {
        if (!(connection instanceof RedisChannelHandler)) {
            throw new LanesException("Lanes need connections made by RedisClient, not " + connection.getClass().getName());
        }
        this.index = index;
        this.connection = connection;
        this.handler = (RedisChannelHandler<K, V>) connection;
        this.writer = handler.getChannelWriter();
        this.counting = counting;
        connection.addListener(this);
    }

    StatefulRedisConnection<K, V> connection() {
        return connection;
    }

    RedisChannelWriter writer() {
        return writer;
    }

    @Override
    public int index() {
        return index;
    }

    @Override
    public boolean isConnected() {
        return connection.isOpen();
    }

    @Override
    public long reconnects() {
        return reconnects.get();
    }

    @Override
    public long pending() {
        return counting ? pending.get() : -1;
    }

    @Override
    public long busyNanos() {
        if (!counting) {
            return -1;
        }
        long since = busySince.get();
        return busyNanos.get() + (since == 0 ? 0 : Math.max(0, System.nanoTime() - since));
    }

    /** The lane connected before it was given to us, so every call is a reconnect. */
    @Override
    public void onRedisConnected(RedisChannelHandler<?, ?> connection, SocketAddress address) {
        reconnects.incrementAndGet();
    }

    /** Counts a command from now until it is answered, fails or is cancelled. To be called before it is written. */
    void count(RedisCommand<?, ?, ?> command) {
        // A command that nobody can be told the end of is never waited for either; it stays out of the books.
        if (!counting || !(command instanceof CompleteableCommand)) {
            return;
        }
        if (pending.incrementAndGet() == 1) {
            // Never 0, which means idle.
            busySince.set(System.nanoTime() | 1);
        }
        ((CompleteableCommand<?>) command).onComplete(answered);
    }

    private void answered() {
        if (pending.decrementAndGet() == 0) {
            long since = busySince.getAndSet(0);
            if (since != 0) {
                busyNanos.addAndGet(Math.max(0, System.nanoTime() - since));
            }
        }
    }

    /** Drops the socket so that Lettuce connects again; what was sent or waits is treated by Lettuce's own options. */
    void dropSocket() {
        RedisChannelWriter inner = writer;
        while (true) {
            if (inner instanceof CommandListenerWriter) {
                inner = ((CommandListenerWriter) inner).getDelegate();
            } else if (inner instanceof CommandExpiryWriter) {
                inner = ((CommandExpiryWriter) inner).getDelegate();
            } else {
                break;
            }
        }
        if (inner instanceof DefaultEndpoint) {
            ((DefaultEndpoint) inner).disconnect();
        }
    }
}
