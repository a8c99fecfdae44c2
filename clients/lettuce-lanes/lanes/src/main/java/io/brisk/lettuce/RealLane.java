package io.brisk.lettuce;

import io.lettuce.core.CommandListenerWriter;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.RedisCommandExecutionException;
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

    /** Guards the next two. It is taken when the lane becomes busy or idle, not per command of many. */
    private final Object busyLock = new Object();

    private long busyNanos;

    /** When the first of the pending commands came; 0 while there are none. */
    private long busySince;

    private final AtomicLong reconnects = new AtomicLong();

    /** Commands are held back until they are flushed, so a question would get no answer. */
    private volatile boolean heldBack;

    /** Whether the ends of commands are looked at for a sign of life, and whether there was one. */
    private volatile boolean watched;

    private volatile boolean lifeSeen;

    private final BiConsumer<Object, Throwable> ended = (ignored, error) -> {
        if (error == null || error instanceof RedisCommandExecutionException) {
            lifeSeen = true;
        }
    };

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
        synchronized (busyLock) {
            return busyNanos + (busySince == 0 ? 0 : Math.max(0, System.nanoTime() - busySince));
        }
    }

    /** The lane connected before it was given to us, so every call is a reconnect. */
    @Override
    public void onRedisConnected(RedisChannelHandler<?, ?> connection, SocketAddress address) {
        reconnects.incrementAndGet();
    }

    /** Counts a command from now until it is answered, fails or is cancelled. To be called before it is written. */
    void count(RedisCommand<?, ?, ?> command) {
        // A command that nobody can be told the end of is never waited for either; it stays out of the books.
        if (!counting && !watched || !(command instanceof CompleteableCommand)) {
            return;
        }
        if (watched) {
            ((CompleteableCommand<?>) command).onComplete(ended);
        }
        if (counting) {
            if (pending.incrementAndGet() == 1) {
                noteBusyOrIdle();
            }
            ((CompleteableCommand<?>) command).onComplete(answered);
        }
    }

    private void answered() {
        if (pending.decrementAndGet() == 0) {
            noteBusyOrIdle();
        }
    }

    /**
     * To be called after the lane became busy or idle. Threads may come here in another order than the one in which they
     * changed the count, so what counts is how it is now; the last one to change it comes last or sees what it needs.
     */
    void noteBusyOrIdle() {
        synchronized (busyLock) {
            boolean busy = pending.get() > 0;
            if (busy && busySince == 0) {
                // Never 0, which means idle.
                busySince = System.nanoTime() | 1;
            } else if (!busy && busySince != 0) {
                busyNanos += Math.max(0, System.nanoTime() - busySince);
                busySince = 0;
            }
        }
    }

    void setAutoFlush(boolean autoFlush) {
        heldBack = !autoFlush;
        connection.setAutoFlushCommands(autoFlush);
    }

    boolean isHeldBack() {
        return heldBack;
    }

    boolean isClosed() {
        return handler.isClosed();
    }

    /** From now on replies to new commands are signs of life, see {@link #isLifeSeen()}. */
    void watch() {
        lifeSeen = false;
        watched = true;
    }

    void unwatch() {
        watched = false;
    }

    boolean isWatched() {
        return watched;
    }

    /** Whether the server answered a command that was given since {@link #watch()}. */
    boolean isLifeSeen() {
        return lifeSeen;
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
