package io.brisk.lettuce;

import io.lettuce.core.RedisException;

/**
 * A command was rejected before any part of it was sent, or a connection could not be opened. The message says why, and
 * what to do instead.
 */
public class LanesException extends RedisException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message the reason, and what to do instead
     */
    public LanesException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message the reason, and what to do instead
     * @param cause the underlying error
     */
    public LanesException(String message, Throwable cause) {
        super(message, cause);
    }
}
