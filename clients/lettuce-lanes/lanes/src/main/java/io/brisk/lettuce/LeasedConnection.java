package io.brisk.lettuce;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.push.PushListener;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ConnectionFacade;
import io.lettuce.core.protocol.PushHandler;
import io.lettuce.core.protocol.RedisCommand;
import io.lettuce.core.resource.ClientResources;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A connection leased from a {@link LeasePool}, for one caller at a time. {@link #close()} returns it.
 * <p>
 * Changes to the connection's state do not reach the next caller. An open WATCH is undone. A connection with an open
 * transaction, another database, a blocking command, listeners or other remaining state is closed and not leased again.
 * A lease that has been returned rejects every command until it is leased again.
 *
 * @param <K> type of keys
 * @param <V> type of values
 */
public final class LeasedConnection<K, V> extends StatefulRedisConnectionImpl<K, V> {

    private final LeasePool<K, V> pool;

    private final StatefulRedisConnection<K, V> real;

    private final Duration timeout;

    private final AtomicBoolean lent = new AtomicBoolean();

    private volatile long lentAt;

    private volatile Thread lentTo;

    /** True if the connection has state that the next caller would see. */
    private volatile boolean marked;

    private volatile boolean watching;

    /** True if a MULTI was sent without an EXEC or DISCARD after it. */
    private volatile boolean transaction;

    /** The number of blocking commands without a reply, whether or not their callers still wait. */
    private final AtomicInteger blocking = new AtomicInteger();

    LeasedConnection(LeasePool<K, V> pool, StatefulRedisConnection<K, V> real, RedisCodec<K, V> codec) {
        super(new Forward(((RedisChannelHandler<?, ?>) real).getChannelWriter()), new Listeners<>(real), codec,
                real.getTimeout());
        this.pool = pool;
        this.real = real;
        this.timeout = real.getTimeout();
        setOptions(real.getOptions());
    }

    StatefulRedisConnection<K, V> real() {
        return real;
    }

    void lend() {
        lentAt = System.nanoTime();
        lentTo = Thread.currentThread();
        lent.set(true);
    }

    boolean isLent() {
        return lent.get();
    }

    long lentForNanos() {
        return System.nanoTime() - lentAt;
    }

    String lentTo() {
        Thread thread = lentTo;
        return thread == null ? "?" : thread.getName();
    }

    @Override
    public <T> RedisCommand<K, V, T> dispatch(RedisCommand<K, V, T> command) {
        if (!lent.get()) {
            command.completeExceptionally(givenBack());
            return command;
        }
        real.dispatch(noted(command));
        return command;
    }

    @Override
    public Collection<RedisCommand<K, V, ?>> dispatch(Collection<? extends RedisCommand<K, V, ?>> commands) {
        if (!lent.get()) {
            commands.forEach(command -> command.completeExceptionally(givenBack()));
            return Collections.unmodifiableCollection(commands);
        }
        List<RedisCommand<K, V, ?>> noted = new ArrayList<>(commands.size());
        commands.forEach(command -> noted.add(noted(command)));
        real.dispatch(noted);
        return Collections.unmodifiableCollection(commands);
    }

    private static LanesException givenBack() {
        return new LanesException("This lease was returned to its pool. Lease another connection.");
    }

    /** Records state that must be undone before the next lease. Returns the command to send. */
    private <T> RedisCommand<K, V, T> noted(RedisCommand<K, V, T> command) {
        switch (Guard.of(command)) {
            case SHARED:
            case REFERS_BACK:
                return command;
            case BLOCKING:
                blocking.incrementAndGet();
                return new SeenCommand<>(command, answered -> {
                    if (answered) {
                        blocking.decrementAndGet();
                    }
                });
            case TRANSACTION:
                return notedTransaction(command);
            default:
                marked = true;
                return command;
        }
    }

    private <T> RedisCommand<K, V, T> notedTransaction(RedisCommand<K, V, T> command) {
        String name = Guard.nameOf(command.getType());
        if (name.equals("MULTI")) {
            // This is set even if the caller gave up. Lettuce then assumes that the MULTI was not sent.
            transaction = true;
            return command;
        }
        // All other commands of a transaction end a WATCH.
        watching = name.equals("WATCH");
        if (!name.equals("EXEC") && !name.equals("DISCARD")) {
            return command;
        }
        transaction = false;
        return new SeenCommand<>(command, answered -> marked |= !answered);
    }

    /** Sends a blocking command of this library, whose result decides between {@link #close()} and {@link #discard()}. */
    void dispatchAlone(RedisCommand<K, V, ?> command) {
        real.dispatch(command);
    }

    /**
     * Returns the connection to its pool. A second call does nothing until the connection is leased again. After that,
     * the call would end another caller's lease, so do not keep a reference to a closed lease.
     */
    @Override
    public void close() {
        giveBack(true);
    }

    /** {@inheritDoc} Returns the connection to its pool, like {@link #close()}. */
    @Override
    public CompletableFuture<Void> closeAsync() {
        giveBack(true);
        return CompletableFuture.completedFuture(null);
    }

    /** Returns the lease and closes its connection, for callers that do not know the state of the connection. */
    public void discard() {
        giveBack(false);
    }

    private void giveBack(boolean wanted) {
        if (!lent.compareAndSet(true, false)) {
            return;
        }
        lentTo = null;
        boolean reusable = wanted && !marked && !transaction && !real.isMulti() && real.isOpen() && blocking.get() == 0;
        if (reusable && watching) {
            // Sent before the commands of the next caller; its reply is ignored.
            real.async().unwatch();
        }
        watching = false;
        pool.giveBack(this, reusable);
    }

    @Override
    public boolean isMulti() {
        return real.isMulti();
    }

    @Override
    public boolean isOpen() {
        return real.isOpen();
    }

    @Override
    public void setTimeout(Duration timeout) {
        super.setTimeout(timeout);
        // The superclass constructor calls this with the timeout of the real connection.
        if (real != null) {
            real.setTimeout(timeout);
            marked |= !timeout.equals(this.timeout);
        }
    }

    @Override
    public void setAutoFlushCommands(boolean autoFlush) {
        marked |= !autoFlush;
        real.setAutoFlushCommands(autoFlush);
    }

    @Override
    public void flushCommands() {
        real.flushCommands();
    }

    @Override
    public void addListener(RedisConnectionStateListener listener) {
        marked = true;
        real.addListener(listener);
    }

    @Override
    public void removeListener(RedisConnectionStateListener listener) {
        real.removeListener(listener);
    }

    @Override
    public void addListener(PushListener listener) {
        marked = true;
        real.addListener(listener);
    }

    @Override
    public void removeListener(PushListener listener) {
        real.removeListener(listener);
    }

    /** The superclass requires a writer. Commands do not pass through it, and the real connection keeps its own facade. */
    private static final class Forward implements RedisChannelWriter {

        private final RedisChannelWriter writer;

        Forward(RedisChannelWriter writer) {
            this.writer = writer;
        }

        @Override
        public <K, V, T> RedisCommand<K, V, T> write(RedisCommand<K, V, T> command) {
            return writer.write(command);
        }

        @Override
        public <K, V> Collection<RedisCommand<K, V, ?>> write(Collection<? extends RedisCommand<K, V, ?>> commands) {
            return writer.write(commands);
        }

        @Override
        public void close() {
            // The pool closes the real connection.
        }

        @Override
        public CompletableFuture<Void> closeAsync() {
            return CompletableFuture.completedFuture(null);
        }

        /** Required by Lettuce before 7.0. No annotation, since later versions do not declare it. */
        public void reset() {
            throw new UnsupportedOperationException("reset() is not supported on a lease. Discard it and lease another connection.");
        }

        @Override
        public void setConnectionFacade(ConnectionFacade connection) {
            // The real connection continues to receive the connection events.
        }

        @Override
        public void setAutoFlushCommands(boolean autoFlush) {
            writer.setAutoFlushCommands(autoFlush);
        }

        @Override
        public void flushCommands() {
            writer.flushCommands();
        }

        @Override
        public ClientResources getClientResources() {
            return writer.getClientResources();
        }
    }

    /** The superclass requires a push handler. Listeners are added to the real connection directly. */
    private static final class Listeners<K, V> implements PushHandler {

        private final StatefulRedisConnection<K, V> real;

        Listeners(StatefulRedisConnection<K, V> real) {
            this.real = real;
        }

        @Override
        public void addListener(PushListener listener) {
            real.addListener(listener);
        }

        @Override
        public void removeListener(PushListener listener) {
            real.removeListener(listener);
        }

        @Override
        public Collection<PushListener> getPushListeners() {
            return Collections.emptyList();
        }
    }
}
