package io.brisk.lettuce;

import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisURI;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.RedisCommand;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/**
 * A Lettuce connection over several real ones, for any number of threads.
 * <p>
 * {@link Lanes} creates it. Use it like any other {@link io.lettuce.core.api.StatefulRedisConnection}: share it, do not
 * pool it, and close it once. Commands that cannot be shared, for example MULTI, SELECT or BLPOP, fail immediately with
 * a {@link LanesException} that names the alternative; see {@link #lease()}. AUTH, READONLY, READWRITE and CLIENT
 * SETNAME, SETINFO, NO-EVICT, NO-TOUCH, CAPA and IMPORT-SOURCE are sent on all lanes, but not on leases.
 *
 * @param <K> type of keys
 * @param <V> type of values
 */
public final class LanesConnection<K, V> extends StatefulRedisConnectionImpl<K, V> {

    /** How long a lease may stay blocked after its publisher was canceled. */
    private static final long LOOK_FOR_CANCELLED_MS = 100;

    private final List<RealLane<K, V>> lanes;

    private final EveryLane<K, V> everyLane;

    private final LeasePool<K, V> leases;

    private final boolean autoLease;

    private volatile LaneProbe<K, V> probe;

    LanesConnection(List<RealLane<K, V>> lanes, Choice<K, V> choice, RedisCodec<K, V> codec, LeasePool<K, V> leases,
            boolean autoLease) {
        this(lanes, new EveryLane<>(lanes, codec), choice, codec, leases, autoLease);
    }

    private LanesConnection(List<RealLane<K, V>> lanes, EveryLane<K, V> everyLane, Choice<K, V> choice,
            RedisCodec<K, V> codec, LeasePool<K, V> leases, boolean autoLease) {
        super(new LanesChannelWriter<>(lanes, choice), everyLane, codec, lanes.get(0).connection().getTimeout());
        this.lanes = lanes;
        this.everyLane = everyLane;
        this.leases = leases;
        this.autoLease = autoLease;
        setOptions(lanes.get(0).connection().getOptions());
    }

    void probeEvery(Duration interval, Duration timeout) {
        probe = new LaneProbe<>(lanes, getResources().timer(), interval, timeout);
        probe.start();
    }

    /**
     * Returns the health of the lanes.
     *
     * @return one view per lane, in the order of their indexes
     */
    public List<LaneHealth> lanes() {
        return Collections.unmodifiableList(new ArrayList<LaneHealth>(lanes));
    }

    /**
     * Leases a separate connection with the same codec and address, for commands that cannot be shared. Close it to
     * return it. At most {@link Lanes#leases(int)} connections are leased at the same time. If all are leased, the call
     * waits for up to the connection's timeout, or for Lettuce's default of 60 s if the timeout is zero.
     *
     * @return a connection for this caller only
     * @throws LanesException if no connection became free, or the server could not be reached
     */
    public LeasedConnection<K, V> lease() {
        if (isShutDown()) {
            throw shutDown();
        }
        // A zero timeout is correct for blocking commands, but the wait for another caller's lease must end.
        Duration timeout = getTimeout();
        return leases.borrow(timeout.isZero() ? RedisURI.DEFAULT_TIMEOUT_DURATION : timeout);
    }

    @Override
    public <T> RedisCommand<K, V, T> dispatch(RedisCommand<K, V, T> command) {
        Guard guard = Guard.of(command);
        if (guard == Guard.SHARED) {
            return super.dispatch(command);
        }
        return apart(guard, command);
    }

    /** {@inheritDoc} If one of the commands is part of a transaction, none of them is sent. */
    @Override
    public Collection<RedisCommand<K, V, ?>> dispatch(Collection<? extends RedisCommand<K, V, ?>> commands) {
        List<RedisCommand<K, V, ?>> all = new ArrayList<>(commands);
        List<Guard> guards = new ArrayList<>(all.size());
        for (RedisCommand<K, V, ?> command : all) {
            guards.add(Guard.of(command));
        }
        int transaction = guards.indexOf(Guard.TRANSACTION);
        if (transaction >= 0) {
            // The commands between MULTI and EXEC would be executed without a transaction.
            LanesException refusal = Guard.TRANSACTION.refusal(all.get(transaction));
            all.forEach(command -> command.completeExceptionally(refusal));
            return all;
        }
        // Shared commands that precede a separately handled command are sent first.
        int begin = 0;
        for (int i = 0; i < all.size(); i++) {
            if (guards.get(i) != Guard.SHARED) {
                dispatchShared(all.subList(begin, i));
                apart(guards.get(i), all.get(i));
                begin = i + 1;
            }
        }
        dispatchShared(all.subList(begin, all.size()));
        return all;
    }

    private void dispatchShared(List<RedisCommand<K, V, ?>> commands) {
        if (!commands.isEmpty()) {
            super.dispatch(commands);
        }
    }

    private <T> RedisCommand<K, V, T> apart(Guard guard, RedisCommand<K, V, T> command) {
        if (guard == Guard.EVERY_LANE) {
            return everyLane.send(command);
        }
        if (guard == Guard.BLOCKING && autoLease) {
            return overLease(command);
        }
        command.completeExceptionally(guard.refusal(command));
        return command;
    }

    /** After a shutdown of the client, Lettuce's connect would never return. */
    private boolean isShutDown() {
        return lanes.stream().allMatch(RealLane::isClosed);
    }

    private static LanesException shutDown() {
        return new LanesException("The connection or its client is closed; no connection can be leased.");
    }

    private <T> RedisCommand<K, V, T> overLease(RedisCommand<K, V, T> command) {
        if (isShutDown()) {
            command.completeExceptionally(shutDown());
            return command;
        }
        leases.borrowAsync().whenComplete((lease, error) -> {
            if (error != null) {
                command.completeExceptionally(error instanceof CompletionException ? error.getCause() : error);
                return;
            }
            if (command.isDone()) {
                lease.close();
                return;
            }
            SeenCommand<K, V, T> sent = new SeenCommand<>(command, answered -> {
                if (answered) {
                    lease.close();
                } else {
                    // After a timeout or a cancellation, the command may still block the connection on the server.
                    lease.discard();
                }
            });
            lease.dispatchAlone(sent);
            if (!(command instanceof AsyncCommand)) {
                lookForCancelled(command, sent);
            }
        });
        return command;
    }

    /** Lettuce does not report the cancellation of a publisher's command, so poll for it. */
    private void lookForCancelled(RedisCommand<K, V, ?> command, SeenCommand<K, V, ?> sent) {
        if (sent.isOver()) {
            return;
        }
        if (command.isDone()) {
            sent.cancel();
            return;
        }
        getResources().timer().newTimeout(t -> lookForCancelled(command, sent), LOOK_FOR_CANCELLED_MS, TimeUnit.MILLISECONDS);
    }

    /** {@inheritDoc} Also sets the timeout of all lanes. */
    @Override
    public void setTimeout(Duration timeout) {
        super.setTimeout(timeout);
        // The superclass constructor calls this before the lanes are set; the lanes already have this timeout.
        if (lanes != null) {
            lanes.forEach(lane -> lane.connection().setTimeout(timeout));
        }
    }

    /** {@inheritDoc} The listener receives the events of each lane, with the lane's connection as the first argument. */
    @Override
    public void addListener(RedisConnectionStateListener listener) {
        lanes.forEach(lane -> lane.connection().addListener(listener));
    }

    @Override
    public void removeListener(RedisConnectionStateListener listener) {
        lanes.forEach(lane -> lane.connection().removeListener(listener));
    }

    /** Returns whether the connection has not been closed and at least one lane is connected. */
    @Override
    public boolean isOpen() {
        return !isClosed() && lanes.stream().anyMatch(RealLane::isConnected);
    }

    /** {@inheritDoc} Closes all lanes and idle leases; other leases are closed when they are returned. */
    @Override
    public CompletableFuture<Void> closeAsync() {
        LaneProbe<K, V> running = probe;
        if (running != null) {
            running.stop();
        }
        return CompletableFuture.allOf(leases.closeAsync(), super.closeAsync());
    }

    /** Returns the number of lanes and of leases, and each lane's health, for logs. The format may change. */
    @Override
    public String toString() {
        long connected = lanes.stream().filter(RealLane::isConnected).count();
        return "LanesConnection[" + connected + " of " + lanes.size() + " lanes connected, " + leases.leased() + " leased, "
                + lanes + "]";
    }
}
