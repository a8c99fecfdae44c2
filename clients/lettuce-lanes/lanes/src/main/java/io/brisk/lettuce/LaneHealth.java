package io.brisk.lettuce;

/**
 * What can be seen of one lane. All methods may be called at any time from any thread; none blocks.
 */
public interface LaneHealth {

    /**
     * The place of this lane among the others.
     *
     * @return a number from 0
     */
    int index();

    /**
     * Whether the lane is connected now.
     *
     * @return {@code false} while it reconnects and after it was closed
     */
    boolean isConnected();

    /**
     * How often the lane had to connect again.
     *
     * @return the count since the lanes were made
     */
    long reconnects();

    /**
     * How many commands were given to this lane and are not answered.
     *
     * @return the count, or -1 if the lanes do not count, see {@link Lanes#counting(boolean)}
     */
    long pending();

    /**
     * For how long, in sum, commands were pending on this lane.
     *
     * @return nanoseconds since the lanes were made, or -1 if the lanes do not count
     */
    long busyNanos();
}
