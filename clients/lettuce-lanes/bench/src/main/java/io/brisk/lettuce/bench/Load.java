package io.brisk.lettuce.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A fixed number of commands by a number of threads, for counting system calls from outside:
 * {@code Load MODE PORT THREADS COMMANDS_PER_THREAD}. Prints how many it did.
 */
public final class Load {

    private static final int KEYS = 100_000;

    private Load() {
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[2]);
        int each = Integer.parseInt(arguments[3]);
        long began;
        try (Mode mode = Mode.of(arguments[0], Integer.parseInt(arguments[1]))) {
            String value = "v".repeat(64);
            List<Thread> callers = new ArrayList<>();
            began = System.nanoTime();
            for (int t = 0; t < threads; t++) {
                Thread caller = new Thread(() -> {
                    try {
                        for (int i = 0; i < each; i++) {
                            mode.set(String.format("key:%012d", ThreadLocalRandom.current().nextInt(KEYS)), value);
                        }
                    } catch (Exception e) {
                        e.printStackTrace();
                        System.exit(1);
                    }
                });
                caller.start();
                callers.add(caller);
            }
            for (Thread caller : callers) {
                caller.join();
            }
        }
        System.out.println((long) threads * each + " commands, " + Math.round(threads * (double) each * 1e9 / (System.nanoTime() - began)) + "/s");
    }
}
