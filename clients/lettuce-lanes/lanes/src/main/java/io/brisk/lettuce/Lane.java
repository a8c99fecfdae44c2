package io.brisk.lettuce;

/**
 * The rule by which a command finds its lane, and so what order is kept.
 * <p>
 * A caller that waits for each reply before it sends the next command sees its own order with every rule. The rules
 * differ in what they promise to a caller that does not wait.
 */
public enum Lane {

    /**
     * Commands with the same first key go to the same lane, in the order in which they were given to the connection.
     * <p>
     * Keys with a hash tag, such as <code>{user:7}:name</code> and <code>{user:7}:mail</code>, share a lane, as they
     * share a slot in a cluster. A command with several keys is ordered with the commands of its first key only; give
     * the keys one hash tag if more is needed. Commands without a key go by their thread.
     */
    KEY,

    /** All commands of one thread go to the same lane, in the order in which that thread gave them. */
    THREAD,

    /** A command goes to the lane with the fewest commands that wait for a reply. No order. */
    LEAST_PENDING,

    /** A command goes to any lane. No order. */
    RANDOM;

    /** Whether commands may move to another lane without breaking what the rule promises about order. */
    boolean isOrdered() {
        return this == KEY || this == THREAD;
    }
}
