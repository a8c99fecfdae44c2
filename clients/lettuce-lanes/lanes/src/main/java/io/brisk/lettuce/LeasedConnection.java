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
 * A connection lent by a {@link LeasePool}, for one caller at a time. {@link #close()} gives it back.
 * <p>
 * What the caller did to the connection does not reach the next one: an open WATCH is undone, and a connection with an
 * open transaction, another database, a command that still blocks, listeners, or anything else that stays is closed
 * instead of being lent again. A lease that is used after it was given back refuses every command, as long as it is not
 * lent again.
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

    /** Something was done that the next caller would see. */
    private volatile boolean marked;

    private volatile boolean watching;

    /** A MULTI was sent, and no EXEC or DISCARD after it. */
    private volatile boolean transaction;

    /** Commands that may block the connection and that the server has not answered, whether or not their caller waits. */
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
        return new LanesException("This lease was given back. Borrow another one.");
    }

    /** Remembers what must be undone before the next caller; the command to send is what is returned. */
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
            // Whatever its caller hears of it: Lettuce takes one that was given up for never sent.
            transaction = true;
            return command;
        }
        // Each of the others ends what is watched.
        watching = name.equals("WATCH");
        if (!name.equals("EXEC") && !name.equals("DISCARD")) {
            return command;
        }
        transaction = false;
        return new SeenCommand<>(command, answered -> marked |= !answered);
    }

    /** For a command of ours that blocks and whose end decides between {@link #close()} and {@link #discard()}. */
    void dispatchAlone(RedisCommand<K, V, ?> command) {
        real.dispatch(command);
    }

    /**
     * Gives the connection back to its pool. A second call does nothing as long as it is not lent again; behind that it
     * would give back what another caller has borrowed, so do not keep a lease that you closed.
     */
    @Override
    public void close() {
        giveBack(true);
    }

    /** {@inheritDoc} Gives the connection back to its pool, as {@link #close()} does. */
    @Override
    public CompletableFuture<Void> closeAsync() {
        giveBack(true);
        return CompletableFuture.completedFuture(null);
    }

    /** Gives the lease back and has the connection closed, for a caller that does not know what state it is in. */
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
            // Goes out before anything the next caller sends; nobody waits for it.
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
        // The constructor of the superclass calls this with the timeout that the real one has.
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

    /** The superclass wants a writer. Commands do not pass here, and the real connection keeps its own facade. */
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

        /** Lettuce before 7.0 asks for it; no annotation, since later ones do not have it. */
        public void reset() {
            throw new UnsupportedOperationException("reset() is not offered for a lease. Discard it and borrow another.");
        }

        @Override
        public void setConnectionFacade(ConnectionFacade connection) {
            // The real connection stays the one that is told of connects and disconnects.
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

    /** The superclass wants a push handler; listeners go to the real connection directly. */
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
