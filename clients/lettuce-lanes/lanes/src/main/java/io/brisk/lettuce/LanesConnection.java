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
 * It is made by {@link Lanes} and used as every {@link io.lettuce.core.api.StatefulRedisConnection} is: share it, do not
 * pool it, close it once at the end. What cannot be shared, such as MULTI, SELECT or BLPOP, is refused at once with a
 * {@link LanesException} that says what to do instead; see {@link #lease()}. AUTH, READONLY, READWRITE and CLIENT
 * SETNAME, SETINFO, NO-EVICT, NO-TOUCH, CAPA and IMPORT-SOURCE are sent over all lanes, not over leases.
 *
 * @param <K> type of keys
 * @param <V> type of values
 */
public final class LanesConnection<K, V> extends StatefulRedisConnectionImpl<K, V> {

    /** How long the lease of a publisher that was cancelled may stay blocked. */
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

    void probeEvery(Duration interval, Duration patience) {
        probe = new LaneProbe<>(lanes, getResources().timer(), interval, patience);
        probe.start();
    }

    /**
     * What can be seen of the lanes.
     *
     * @return one view per lane, in their order
     */
    public List<LaneHealth> lanes() {
        return Collections.unmodifiableList(new ArrayList<LaneHealth>(lanes));
    }

    /**
     * Lends a connection of its own, with the same codec and address, for what lanes cannot do. Close it to give it
     * back. At most {@link Lanes#leases(int)} are lent at a time; one that waits for a free one waits for the
     * connection's timeout, or for Lettuce's default of 60 s if that is zero.
     *
     * @return a connection for this caller alone
     * @throws LanesException if none became free or the server could not be reached
     */
    public LeasedConnection<K, V> lease() {
        if (isShutDown()) {
            throw shutDown();
        }
        // No timeout is right for a command that blocks, but a wait for others to give back must end.
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

    /** {@inheritDoc} If a part of a transaction is among them, none is sent. */
    @Override
    public Collection<RedisCommand<K, V, ?>> dispatch(Collection<? extends RedisCommand<K, V, ?>> commands) {
        List<RedisCommand<K, V, ?>> all = new ArrayList<>(commands);
        List<Guard> guards = new ArrayList<>(all.size());
        for (RedisCommand<K, V, ?> command : all) {
            guards.add(Guard.of(command));
        }
        int transaction = guards.indexOf(Guard.TRANSACTION);
        if (transaction >= 0) {
            // What stands between MULTI and EXEC would be done without them.
            LanesException refusal = Guard.TRANSACTION.refusal(all.get(transaction));
            all.forEach(command -> command.completeExceptionally(refusal));
            return all;
        }
        // What is before a command that goes another way is given away before it.
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

    /** Lettuce's connect would never end then. */
    private boolean isShutDown() {
        return lanes.stream().allMatch(RealLane::isClosed);
    }

    private static LanesException shutDown() {
        return new LanesException("The lanes are closed, by their client if nobody else did; nothing can be leased.");
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
                    // After a timeout or a cancellation the server may still block the connection.
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

    /** Lettuce tells nobody when the command of a publisher is cancelled, so one must look. */
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

    /** {@inheritDoc} Sets the timeout of all lanes, too. */
    @Override
    public void setTimeout(Duration timeout) {
        super.setTimeout(timeout);
        // The constructor of the superclass calls this before there are lanes; theirs is the same then.
        if (lanes != null) {
            lanes.forEach(lane -> lane.connection().setTimeout(timeout));
        }
    }

    /** {@inheritDoc} The listener is told of each lane; its first argument is the connection of that lane. */
    @Override
    public void addListener(RedisConnectionStateListener listener) {
        lanes.forEach(lane -> lane.connection().addListener(listener));
    }

    @Override
    public void removeListener(RedisConnectionStateListener listener) {
        lanes.forEach(lane -> lane.connection().removeListener(listener));
    }

    /** Whether it was not closed and at least one lane is connected. */
    @Override
    public boolean isOpen() {
        return !isClosed() && lanes.stream().anyMatch(RealLane::isConnected);
    }

    /** {@inheritDoc} Closes all lanes and the leases that are not lent; lent ones close when they are given back. */
    @Override
    public CompletableFuture<Void> closeAsync() {
        LaneProbe<K, V> running = probe;
        if (running != null) {
            running.stop();
        }
        return CompletableFuture.allOf(leases.closeAsync(), super.closeAsync());
    }
}
