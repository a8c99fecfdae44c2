package io.brisk.lettuce.testkit;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Waits for a condition, with a deadline.
 */
public final class Await {

    private static final long LOOK_AGAIN_MS = 2;

    private Await() {
    }

    /** Returns when the condition holds; fails with the description {@code what} after {@code msMax} milliseconds. */
    public static void until(String what, long msMax, BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(msMax);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("Not within " + msMax + " ms: " + what);
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(LOOK_AGAIN_MS));
        }
    }

    /** Like {@link #until(String, long, BooleanSupplier)}, with a limit of 20 s. */
    public static void until(String what, BooleanSupplier condition) {
        until(what, 20_000, condition);
    }
}
