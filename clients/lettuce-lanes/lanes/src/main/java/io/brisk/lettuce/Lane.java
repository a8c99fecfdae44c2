package io.brisk.lettuce;

/**
 * The rule that selects the lane of a command, and therefore the order that is guaranteed.
 * <p>
 * With every rule, a caller that waits for each reply before it sends the next command sees its own order. The rules
 * differ in the order that they guarantee to a caller that does not wait.
 */
public enum Lane {

    /**
     * Commands with the same first key are sent on the same lane, in the order in which they were submitted. <p> Keys
     * with a hash tag, such as <code>{user:7}:name</code> and <code>{user:7}:mail</code>, share a lane, just as they
     * share a slot in a cluster. A command with several keys keeps its order only relative to the commands on its first
     * key; if that is not enough, give the keys the same hash tag. Commands without a key are routed by thread.
     */
    KEY,

    /** All commands of one thread are sent on the same lane, in the order in which the thread submitted them. */
    THREAD,

    /** A command is sent on the lane with the fewest pending commands. No order is guaranteed. */
    LEAST_PENDING,

    /** A command is sent on a random lane. No order is guaranteed. */
    RANDOM;

    /** Returns whether the rule guarantees an order that a move to another lane could break. */
    boolean isOrdered() {
        return this == KEY || this == THREAD;
    }
}
