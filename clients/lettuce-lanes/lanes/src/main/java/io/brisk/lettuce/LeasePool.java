package io.brisk.lettuce;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A bounded pool of connections for callers that need one for themselves.
 * <p>
 * Unlike Lettuce's pool it makes no proxies when a connection is borrowed: each real connection has one
 * {@link LeasedConnection} around it, made when it is connected and lent again and again.
 *
 * <pre>{@code
 * LeasePool<String, String> pool = LeasePool.of(client, 50);
 * try (LeasedConnection<String, String> own = pool.borrow(Duration.ofSeconds(1))) {
 *     own.sync().blpop(5, "queue");
 * }
 * }</pre>
 *
 * The connection given back last is lent first, so that one that is not needed idles. A connection that lost its socket
 * is not lent; a new one is connected instead, which fails with the reason if the server is away.
 *
 * @param <K> type of keys
 * @param <V> type of values
 */
public final class LeasePool<K, V> implements AutoCloseable {

    private final RedisCodec<K, V> codec;

    private final Supplier<CompletableFuture<StatefulRedisConnection<K, V>>> connector;

    private final int max;

    /** One permit per connection that may be lent further. Not fair: fairness would cost a hand-over per borrow. */
    private final Semaphore permits;

    private final Deque<LeasedConnection<K, V>> idle = new ConcurrentLinkedDeque<>();

    private final Set<LeasedConnection<K, V>> all = ConcurrentHashMap.newKeySet();

    private volatile Throwable lastFailure;

    private volatile boolean closed;

    private LeasePool(RedisCodec<K, V> codec, Supplier<CompletableFuture<StatefulRedisConnection<K, V>>> connector, int max) {
        if (max < 1) {
            throw new IllegalArgumentException("A pool of leases has at least 1 connection, not " + max);
        }
        this.codec = Objects.requireNonNull(codec, "codec");
        this.connector = connector;
        this.max = max;
        this.permits = new Semaphore(max);
    }

    /**
     * A pool for strings in UTF-8, to the address that the client was created with.
     *
     * @param client connects the connections; closing it closes them
     * @param max how many there are at most
     * @return an empty pool; connections are made when they are needed
     */
    public static LeasePool<String, String> of(RedisClient client, int max) {
        return of(client, StringCodec.UTF8, max);
    }

    /**
     * A pool to the address that the client was created with.
     *
     * @param client connects the connections; closing it closes them
     * @param codec translates keys and values
     * @param max how many there are at most
     * @param <K> type of keys
     * @param <V> type of values
     * @return an empty pool; connections are made when they are needed
     */
    public static <K, V> LeasePool<K, V> of(RedisClient client, RedisCodec<K, V> codec, int max) {
        // Lettuce connects without blocking only to an address that is given; this one only the client knows. Each
        // attempt has a thread of its own, at most one per connection: on the client's own threads, which are few, it
        // would hold up the others and every reconnect.
        Executor executor = attempt -> {
            Thread thread = new Thread(attempt, "lettuce-lanes-connect");
            thread.setDaemon(true);
            thread.start();
        };
        return new LeasePool<>(codec, () -> CompletableFuture.supplyAsync(() -> client.connect(codec), executor), max);
    }

    /**
     * A pool to an address.
     *
     * @param client connects the connections; closing it closes them
     * @param codec translates keys and values
     * @param uri where to
     * @param max how many there are at most
     * @param <K> type of keys
     * @param <V> type of values
     * @return an empty pool; connections are made when they are needed
     */
    public static <K, V> LeasePool<K, V> of(RedisClient client, RedisCodec<K, V> codec, RedisURI uri, int max) {
        return new LeasePool<>(codec, () -> client.connectAsync(codec, uri).toCompletableFuture(), max);
    }

    /** A connection that the pool does not keep, made as its own are. */
    CompletableFuture<StatefulRedisConnection<K, V>> connect() {
        try {
            return connector.get();
        } catch (RuntimeException e) {
            return failed(e);
        }
    }

    /**
     * Lends a connection; {@link LeasedConnection#close()} gives it back.
     *
     * @param patience how long to wait for one if all are lent
     * @return a connection for this caller alone
     * @throws LanesException if none became free in time, the server could not be reached, or the pool is closed
     */
    public LeasedConnection<K, V> borrow(Duration patience) {
        refuseIfClosed();
        if (!permits.tryAcquire()) {
            awaitPermit(patience);
        }
        LeasedConnection<K, V> free = pollIdle();
        if (free != null) {
            return free;
        }
        try {
            LeasedConnection<K, V> fresh = connectAndLend().join();
            // Lent to this thread, not to that of the event loop.
            fresh.lend();
            return fresh;
        } catch (CompletionException e) {
            throw (LanesException) e.getCause();
        }
    }

    private void awaitPermit(Duration patience) {
        try {
            if (!permits.tryAcquire(patience.toNanos(), TimeUnit.NANOSECONDS)) {
                throw exhausted("none was given back within " + patience.toMillis() + " ms");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LanesException("Interrupted while waiting for a lease", e);
        }
        refuseIfClosedHolding();
    }

    /** As {@link #borrow(Duration)}, but it never blocks and does not wait for a connection to be given back. */
    CompletableFuture<LeasedConnection<K, V>> borrowAsync() {
        try {
            refuseIfClosed();
        } catch (LanesException e) {
            return failed(e);
        }
        if (!permits.tryAcquire()) {
            return failed(exhausted("none is free now"));
        }
        LeasedConnection<K, V> free = pollIdle();
        return free != null ? CompletableFuture.completedFuture(free) : connectAndLend();
    }

    private static <T> CompletableFuture<T> failed(Throwable error) {
        CompletableFuture<T> future = new CompletableFuture<>();
        future.completeExceptionally(error);
        return future;
    }

    /** To be called with a permit, which the lease then has. */
    private LeasedConnection<K, V> pollIdle() {
        LeasedConnection<K, V> free;
        while ((free = idle.pollFirst()) != null) {
            if (free.isOpen()) {
                free.lend();
                return free;
            }
            retire(free);
        }
        return null;
    }

    /** To be called with a permit, which the lease then has; it is returned if there can be none. */
    private CompletableFuture<LeasedConnection<K, V>> connectAndLend() {
        return connect().handle((connection, error) -> {
            if (error != null) {
                permits.release();
                Throwable cause = error instanceof CompletionException ? error.getCause() : error;
                lastFailure = cause;
                throw new LanesException("No connection to lease: " + cause.getMessage(), cause);
            }
            LeasedConnection<K, V> fresh = new LeasedConnection<>(this, connection, codec);
            all.add(fresh);
            fresh.lend();
            if (closed) {
                fresh.discard();
                throw closedPool();
            }
            return fresh;
        });
    }

    /** Called by a lease, once per lending. */
    void giveBack(LeasedConnection<K, V> lease, boolean reusable) {
        if (reusable && !closed) {
            idle.addFirst(lease);
            // A close that came in between may have missed it.
            if (closed && idle.remove(lease)) {
                retire(lease);
            }
        } else {
            retire(lease);
        }
        permits.release();
    }

    private CompletableFuture<Void> retire(LeasedConnection<K, V> lease) {
        all.remove(lease);
        return lease.real().closeAsync();
    }

    /**
     * How many connections are lent now.
     *
     * @return from 0 to the maximum
     */
    public int leased() {
        return max - permits.availablePermits();
    }

    /**
     * How many connections there are, lent or not.
     *
     * @return from 0 to the maximum
     */
    public int size() {
        return all.size();
    }

    private void refuseIfClosed() {
        if (closed) {
            throw closedPool();
        }
    }

    private void refuseIfClosedHolding() {
        if (closed) {
            permits.release();
            throw closedPool();
        }
    }

    private static LanesException closedPool() {
        return new LanesException("The pool of leases is closed");
    }

    private LanesException exhausted(String what) {
        LeasedConnection<K, V> oldest = null;
        for (LeasedConnection<K, V> lease : all) {
            if (lease.isLent() && (oldest == null || lease.lentForNanos() > oldest.lentForNanos())) {
                oldest = lease;
            }
        }
        StringBuilder message = new StringBuilder("All " + max + " connections are leased and " + what + ".");
        if (oldest != null) {
            message.append(" The longest lease is ").append(TimeUnit.NANOSECONDS.toMillis(oldest.lentForNanos()))
                    .append(" ms old, taken by thread ").append(oldest.lentTo())
                    .append("; a lease that is never closed is lost to the pool.");
        }
        Throwable failure = lastFailure;
        if (failure != null) {
            message.append(" The last failure to connect was: ").append(failure.getMessage());
        }
        return new LanesException(message.toString(), failure);
    }

    /** Closes the connections that are not lent, and lent ones when they are given back. Nothing is lent any more. */
    @Override
    public void close() {
        closeAsync().join();
    }

    /** As {@link #close()}, but it does not wait for the sockets, so it may be called on an event loop. */
    CompletableFuture<Void> closeAsync() {
        closed = true;
        List<CompletableFuture<Void>> closing = new ArrayList<>();
        LeasedConnection<K, V> free;
        while ((free = idle.pollFirst()) != null) {
            closing.add(retire(free));
        }
        return CompletableFuture.allOf(closing.toArray(new CompletableFuture<?>[0]));
    }
}
