package io.brisk.lettuce.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Sends a fixed number of commands from several threads: {@code Load MODE PORT THREADS COMMANDS_PER_THREAD}. Prints the
 * number of commands and of write system calls, as counted by the kernel in {@code /proc/self/io}.
 */
public final class Load {

    private static final int KEYS = 100_000;

    private Load() {
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[2]);
        int each = Integer.parseInt(arguments[3]);
        long began;
        long writesBefore;
        long writes;
        try (Mode mode = Mode.of(arguments[0], Integer.parseInt(arguments[1]))) {
            String value = "v".repeat(64);
            List<Thread> callers = new ArrayList<>();
            writesBefore = writes();
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
            writes = writes() - writesBefore;
        }
        long commands = (long) threads * each;
        System.out.printf("%s: %d commands, %d writes, %.3f writes per command, %.0f commands/s%n", arguments[0], commands, writes,
                (double) writes / commands, commands * 1e9 / (System.nanoTime() - began));
    }

    private static long writes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/io"))) {
            if (line.startsWith("syscw: ")) {
                return Long.parseLong(line.substring("syscw: ".length()));
            }
        }
        throw new IOException("/proc/self/io has no field syscw");
    }
}
