package io.brisk.lettuce.bench;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * JMH benchmark: many threads, each of which sends a command and waits for its reply.
 */
@State(Scope.Benchmark)
@BenchmarkMode(org.openjdk.jmh.annotations.Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
public class Article {

    /** See {@link Mode}. */
    @Param("single")
    public String mode;

    /** The port of the server, or of the delay proxy in front of it. */
    @Param("6379")
    public int port;

    /** Bytes per value. */
    @Param("64")
    public int size;

    /** Number of keys. */
    @Param("100000")
    public int keys;

    private Mode connection;

    private String value;

    private String[] names;

    @Setup(Level.Trial)
    public void connect() throws Exception {
        connection = Mode.of(mode, port);
        value = "v".repeat(size);
        names = new String[keys];
        for (int i = 0; i < keys; i++) {
            // 16 bytes each.
            names[i] = String.format("key:%012d", i);
        }
    }

    @TearDown(Level.Trial)
    public void end() throws Exception {
        connection.close();
    }

    private String key() {
        return names[ThreadLocalRandom.current().nextInt(names.length)];
    }

    @Benchmark
    public String set() throws Exception {
        return connection.set(key(), value);
    }

    @Benchmark
    public String get() throws Exception {
        return connection.get(key());
    }
}
