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
 * A bounded pool of connections for callers that need exclusive use of one.
 * <p>
 * Unlike Lettuce's pool, it creates no proxy per borrow: each real connection has one {@link LeasedConnection}, created
 * when it is opened and reused for each lease.
 *
 * <pre>{@code
 * LeasePool<String, String> pool = LeasePool.of(client, 50);
 * try (LeasedConnection<String, String> own = pool.borrow(Duration.ofSeconds(1))) {
 *     own.sync().blpop(5, "queue");
 * }
 * }</pre>
 *
 * The most recently returned connection is leased first, so connections that are not needed stay idle. A connection
 * that lost its socket is not leased; a new one is opened instead. If the server cannot be reached, the attempt fails
 * with the reason.
 *
 * @param <K> type of keys
 * @param <V> type of values
 */
public final class LeasePool<K, V> implements AutoCloseable {

    private final RedisCodec<K, V> codec;

    private final Supplier<CompletableFuture<StatefulRedisConnection<K, V>>> connector;

    private final int max;

    /** One permit per connection that can still be leased. Not fair: fairness would cost a context switch per borrow. */
    private final Semaphore permits;

    private final Deque<LeasedConnection<K, V>> idle = new ConcurrentLinkedDeque<>();

    private final Set<LeasedConnection<K, V>> all = ConcurrentHashMap.newKeySet();

    private volatile Throwable lastFailure;

    private volatile boolean closed;

    private LeasePool(RedisCodec<K, V> codec, Supplier<CompletableFuture<StatefulRedisConnection<K, V>>> connector, int max) {
        if (max < 1) {
            throw new IllegalArgumentException("A lease pool needs at least 1 connection, not " + max);
        }
        this.codec = Objects.requireNonNull(codec, "codec");
        this.connector = connector;
        this.max = max;
        this.permits = new Semaphore(max);
    }

    /**
     * Creates a pool with UTF-8 strings as keys and values, for the address that the client was created with.
     *
     * @param client opens the connections; shutting it down closes them
     * @param max maximum number of connections
     * @return an empty pool; connections are opened when they are needed
     */
    public static LeasePool<String, String> of(RedisClient client, int max) {
        return of(client, StringCodec.UTF8, max);
    }

    /**
     * Creates a pool for the address that the client was created with.
     *
     * @param client opens the connections; shutting it down closes them
     * @param codec encodes and decodes keys and values
     * @param max maximum number of connections
     * @param <K> type of keys
     * @param <V> type of values
     * @return an empty pool; connections are opened when they are needed
     */
    public static <K, V> LeasePool<K, V> of(RedisClient client, RedisCodec<K, V> codec, int max) {
        // Lettuce's non-blocking connect needs an explicit address, which only the client knows. Each attempt therefore
        // runs on a separate thread, at most one per connection. On one of the client's few threads, an attempt would
        // delay the other attempts and all reconnects.
        Executor executor = attempt -> {
            Thread thread = new Thread(attempt, "lettuce-lanes-connect");
            thread.setDaemon(true);
            thread.start();
        };
        return new LeasePool<>(codec, () -> CompletableFuture.supplyAsync(() -> client.connect(codec), executor), max);
    }

    /**
     * Creates a pool for an address.
     *
     * @param client opens the connections; shutting it down closes them
     * @param codec encodes and decodes keys and values
     * @param uri the address
     * @param max maximum number of connections
     * @param <K> type of keys
     * @param <V> type of values
     * @return an empty pool; connections are opened when they are needed
     */
    public static <K, V> LeasePool<K, V> of(RedisClient client, RedisCodec<K, V> codec, RedisURI uri, int max) {
        return new LeasePool<>(codec, () -> client.connectAsync(codec, uri).toCompletableFuture(), max);
    }

    /** Opens a connection in the same way as the pool, but outside the pool. */
    CompletableFuture<StatefulRedisConnection<K, V>> connect() {
        try {
            return connector.get();
        } catch (RuntimeException e) {
            return failed(e);
        }
    }

    /**
     * Leases a connection; {@link LeasedConnection#close()} returns it.
     *
     * @param timeout how long to wait if all connections are leased
     * @return a connection for this caller only
     * @throws LanesException if no connection became free in time, the server could not be reached, or the pool is closed
     */
    public LeasedConnection<K, V> borrow(Duration timeout) {
        refuseIfClosed();
        if (!permits.tryAcquire()) {
            awaitPermit(timeout);
        }
        LeasedConnection<K, V> free = pollIdle();
        if (free != null) {
            return free;
        }
        try {
            LeasedConnection<K, V> fresh = connectAndLend().join();
            // Record this thread as the holder, not the event loop's.
            fresh.lend();
            return fresh;
        } catch (CompletionException e) {
            throw (LanesException) e.getCause();
        }
    }

    private void awaitPermit(Duration timeout) {
        try {
            if (!permits.tryAcquire(timeout.toNanos(), TimeUnit.NANOSECONDS)) {
                throw exhausted("none was returned within " + timeout.toMillis() + " ms");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LanesException("Interrupted while waiting for a lease", e);
        }
        refuseIfClosedHolding();
    }

    /** Like {@link #borrow(Duration)}, but it never blocks, and fails if all connections are leased. */
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

    /** Must be called with a permit, which passes to the lease. */
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

    /** Must be called with a permit, which passes to the lease, or is released on failure. */
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

    /** Called once for each lease. */
    void giveBack(LeasedConnection<K, V> lease, boolean reusable) {
        if (reusable && !closed) {
            idle.addFirst(lease);
            // A concurrent close may have missed this connection.
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
     * Returns the number of connections that are leased now.
     *
     * @return from 0 to the maximum
     */
    public int leased() {
        return max - permits.availablePermits();
    }

    /**
     * Returns the number of open connections, leased or idle.
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
        return new LanesException("The lease pool is closed");
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
            message.append(" The oldest lease is ").append(TimeUnit.NANOSECONDS.toMillis(oldest.lentForNanos()))
                    .append(" ms old, taken by thread ").append(oldest.lentTo())
                    .append("; a lease must be closed to return its connection.");
        }
        Throwable failure = lastFailure;
        if (failure != null) {
            message.append(" The last connection attempt failed: ").append(failure.getMessage());
        }
        return new LanesException(message.toString(), failure);
    }

    /** Closes idle connections now, and leased ones when they are returned. No connection can be leased afterwards. */
    @Override
    public void close() {
        closeAsync().join();
    }

    /** Like {@link #close()}, but it does not wait for the sockets, so it may be called on an event loop. */
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
