package io.brisk.lettuce;

/**
 * What happens to a command whose lane has lost its connection and is reconnecting.
 * <p>
 * The policy applies only to new commands. Lettuce's {@link io.lettuce.core.ClientOptions}, for example automatic
 * reconnect and the replay filter, determine what happens to commands that were already sent.
 */
public enum WhenLost {

    /** The command waits in its lane for the reconnect or its timeout, as on a plain connection. The order is kept. */
    WAIT,

    /** The command fails immediately with a {@link LanesException}. The order is kept. */
    FAIL,

    /**
     * The command is sent on another lane that is connected; if no other lane is connected, the command waits. With
     * {@link Lane#THREAD}, commands of a thread that does not wait for replies may then be reordered; use {@link #WAIT}
     * if that matters. Not permitted with {@link Lane#KEY}, whose guarantee it would break.
     */
    MOVE
}
