package io.brisk.lettuce;

import io.lettuce.core.RedisException;

/**
 * A command was refused by the lanes before anything of it was sent. The message says why and what to do instead.
 */
public class LanesException extends RedisException {

    private static final long serialVersionUID = 1L;

    /**
     * A refusal.
     *
     * @param message why, and what to do instead
     */
    public LanesException(String message) {
        super(message);
    }

    /**
     * A refusal with a cause.
     *
     * @param message why, and what to do instead
     * @param cause what went wrong below
     */
    public LanesException(String message, Throwable cause) {
        super(message, cause);
    }
}
