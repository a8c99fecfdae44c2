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
 * One of the real connections, its writer, and its counters.
 */
final class RealLane<K, V> implements LaneHealth, RedisConnectionStateListener {

    private final int index;

    private final StatefulRedisConnection<K, V> connection;

    private final RedisChannelHandler<K, V> handler;

    private final RedisChannelWriter writer;

    private final boolean counting;

    private final AtomicLong pending = new AtomicLong();

    /** Guards the next two fields. Taken when the lane becomes busy or idle, not for each command. */
    private final Object busyLock = new Object();

    private long busyNanos;

    /** When the lane became busy; 0 while it is idle. */
    private long busySince;

    private final AtomicLong reconnects = new AtomicLong();

    /** True if commands are not flushed automatically, so that a PING would get no reply. */
    private volatile boolean heldBack;

    /** True while the lane watches for a reply to a new command. The next field is true if one has arrived. */
    private volatile boolean watched;

    private volatile boolean lifeSeen;

    private final BiConsumer<Object, Throwable> ended = (ignored, error) -> {
        if (error == null || error instanceof RedisCommandExecutionException) {
            lifeSeen = true;
        }
    };

    /** One object for all commands, so that counting allocates no closure. */
    private final BiConsumer<Object, Throwable> answered = (ignored, error) -> answered();

    @SuppressWarnings("unchecked")
    RealLane(int index, StatefulRedisConnection<K, V> connection, boolean counting) {
        if (!(connection instanceof RedisChannelHandler)) {
            throw new LanesException("Lanes require connections of RedisClient, not " + connection.getClass().getName());
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

    /** The connection was open before the listener was added, so every call is a reconnect. */
    @Override
    public void onRedisConnected(RedisChannelHandler<?, ?> connection, SocketAddress address) {
        reconnects.incrementAndGet();
    }

    /** Counts a command as pending until it completes, fails or is canceled. Must be called before it is written. */
    void count(RedisCommand<?, ?, ?> command) {
        // The completion of other commands cannot be observed, so they are not counted.
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
     * Must be called after the lane has become busy or idle. Threads may arrive in a different order than their
     * changes, so only the current count matters: the thread of the last change arrives last, or finds the state
     * already correct.
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

    /** Starts to watch for a reply to a command that is submitted from now on. See {@link #isLifeSeen()}. */
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

    /** Returns whether the server replied to a command that was submitted since {@link #watch()}. */
    boolean isLifeSeen() {
        return lifeSeen;
    }

    /** Closes the socket, so that Lettuce reconnects. Lettuce's options decide the fate of sent and queued commands. */
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

    @Override
    public String toString() {
        return "lane " + index + " (" + (isConnected() ? "connected" : isClosed() ? "closed" : "reconnecting") + ", "
                + reconnects() + " reconnects" + (counting ? ", " + pending() + " pending" : "") + ")";
    }
}
