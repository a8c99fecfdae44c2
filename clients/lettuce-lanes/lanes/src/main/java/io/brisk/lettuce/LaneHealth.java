package io.brisk.lettuce;

/**
 * The health of one lane. All methods may be called at any time by any thread; none blocks.
 */
public interface LaneHealth {

    /**
     * Returns the index of this lane.
     *
     * @return a number from 0
     */
    int index();

    /**
     * Returns whether the lane is connected now.
     *
     * @return {@code false} while it reconnects and after it was closed
     */
    boolean isConnected();

    /**
     * Returns how many times the lane has reconnected.
     *
     * @return the count since the lanes were created
     */
    long reconnects();

    /**
     * Returns the number of commands on this lane without a reply.
     *
     * @return the count, or -1 if counting is off, see {@link Lanes#counting(boolean)}
     */
    long pending();

    /**
     * Returns the total time during which commands were pending on this lane.
     *
     * @return nanoseconds since the lanes were created, or -1 if counting is off
     */
    long busyNanos();
}
