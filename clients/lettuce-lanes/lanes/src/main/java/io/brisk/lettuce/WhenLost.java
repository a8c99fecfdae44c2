package io.brisk.lettuce;

/**
 * What happens to a command whose lane has lost its connection and is reconnecting.
 * <p>
 * It is about new commands only. What happens to commands that were sent already is decided by Lettuce's own
 * {@link io.lettuce.core.ClientOptions}, such as its automatic reconnect and its replay filter.
 */
public enum WhenLost {

    /** The command waits in its lane, as it would on a plain connection, for reconnect or timeout. Keeps all order. */
    WAIT,

    /** The command fails at once with a {@link LanesException}. Keeps all order. */
    FAIL,

    /**
     * The command goes to another lane that is connected; if there is none it waits. With {@link Lane#THREAD} a thread
     * that does not wait for its replies can be overtaken by itself at this moment; choose {@link #WAIT} where that
     * must not be. Not possible with {@link Lane#KEY}, whose promise it would break.
     */
    MOVE
}
