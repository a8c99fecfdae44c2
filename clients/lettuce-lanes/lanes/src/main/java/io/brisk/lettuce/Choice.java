package io.brisk.lettuce;

import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.RedisCommand;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Selects the lane of a command by a {@link Lane} rule, and applies the {@link WhenLost} policy.
 */
final class Choice<K, V> {

    private final Lane rule;

    private final WhenLost whenLost;

    private final RealLane<K, V>[] lanes;

    @SuppressWarnings({ "unchecked", "rawtypes" })
    Choice(Lane rule, WhenLost whenLost, List<RealLane<K, V>> lanes) {
        this.rule = rule;
        this.whenLost = whenLost;
        this.lanes = lanes.toArray(new RealLane[0]);
    }

    /**
     * Returns the lane for a command.
     *
     * @throws LanesException if its lane has lost its connection and the policy is {@link WhenLost#FAIL}
     */
    RealLane<K, V> laneOf(RedisCommand<?, ?, ?> command) {
        if (rule == Lane.LEAST_PENDING) {
            return leastPending();
        }
        int preferred = preferred(command);
        RealLane<K, V> lane = lanes[preferred];
        if (whenLost == WhenLost.WAIT || lane.isConnected()) {
            return lane;
        }
        if (whenLost == WhenLost.FAIL) {
            throw lost(lane);
        }
        for (int i = 1; i < lanes.length; i++) {
            RealLane<K, V> other = lanes[(preferred + i) % lanes.length];
            if (other.isConnected()) {
                return other;
            }
        }
        return lane;
    }

    private int preferred(RedisCommand<?, ?, ?> command) {
        if (rule == Lane.RANDOM) {
            return ThreadLocalRandom.current().nextInt(lanes.length);
        }
        if (rule == Lane.KEY) {
            CommandArgs<?, ?> args = command.getArgs();
            ByteBuffer key = args == null ? null : args.getFirstEncodedKey();
            if (key != null) {
                return spread(SlotHash.getSlot(key));
            }
        }
        // Thread ids are consecutive, so the threads of a pool spread evenly.
        return (int) (threadId() % lanes.length);
    }

    /** Maps a slot to a lane. Remainders of the slots of similar keys would cluster; the high bits of a product do not. */
    private int spread(int slot) {
        long mixed = slot * 0x9E3779B9L & 0xFFFFFFFFL;
        return (int) (mixed * lanes.length >>> 32);
    }

    // The replacement of getId() exists only in Java 19 and later.
    @SuppressWarnings("deprecation")
    private static long threadId() {
        return Thread.currentThread().getId();
    }

    private RealLane<K, V> leastPending() {
        // Starts at a random lane, so that ties do not all go to the first one.
        int begin = ThreadLocalRandom.current().nextInt(lanes.length);
        RealLane<K, V> best = null;
        for (int i = 0; i < lanes.length; i++) {
            RealLane<K, V> lane = lanes[(begin + i) % lanes.length];
            boolean usable = whenLost == WhenLost.WAIT || lane.isConnected();
            if (usable && (best == null || lane.pending() < best.pending())) {
                best = lane;
            }
        }
        if (best != null) {
            return best;
        }
        if (whenLost == WhenLost.FAIL) {
            throw lost(lanes[begin]);
        }
        return lanes[begin];
    }

    private LanesException lost(RealLane<K, V> lane) {
        return new LanesException("Lane " + lane.index() + " of " + lanes.length
                + " lost its connection and is reconnecting; the command was not sent. With WhenLost.WAIT it would wait.");
    }
}
