package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The order that the rules guarantee to callers that do not wait for replies.
 */
class OrderTest extends ServerCase {

    private static final int APPENDS = 1_000_000;

    /** The number of digits of an appended number. */
    private static final int WIDTH = 7;

    /** Limits the memory of commands without replies. */
    private static final int UNANSWERED_MAX = 20_000;

    private static final int BATCH = 100;

    /** Appends ascending numbers one after the other, without waiting for replies; keyOf may change the key. */
    private static void append(StatefulRedisConnection<String, String> connection, int appends, IntFunction<String> keyOf)
            throws InterruptedException {
        RedisAsyncCommands<String, String> async = connection.async();
        Semaphore unanswered = new Semaphore(UNANSWERED_MAX);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        for (int i = 0; i < appends; i++) {
            unanswered.acquire();
            async.append(keyOf.apply(i), number(i)).whenComplete((length, error) -> {
                if (error != null) {
                    failure.set(error);
                }
                unanswered.release();
            });
        }
        unanswered.acquire(UNANSWERED_MAX);
        assertNull(failure.get());
    }

    /** Like {@link #append}, but submits many commands in one call, which uses another method of the connection. */
    private static void appendBatches(LanesConnection<String, String> lanes, int appends, String key)
            throws InterruptedException {
        Semaphore unanswered = new Semaphore(UNANSWERED_MAX);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        for (int i = 0; i < appends; i += BATCH) {
            unanswered.acquire(BATCH);
            List<AsyncCommand<String, String, Long>> batch = new ArrayList<>(BATCH);
            for (int j = i; j < i + BATCH; j++) {
                AsyncCommand<String, String, Long> append = new AsyncCommand<>(new Command<>(CommandType.APPEND,
                        new IntegerOutput<>(StringCodec.UTF8),
                        new CommandArgs<>(StringCodec.UTF8).addKey(key).addValue(number(j))));
                append.onComplete((length, error) -> {
                    if (error != null) {
                        failure.set(error);
                    }
                    unanswered.release();
                });
                batch.add(append);
            }
            lanes.dispatch(batch);
        }
        unanswered.acquire(UNANSWERED_MAX);
        assertNull(failure.get());
    }

    private static String number(int i) {
        return String.valueOf(10_000_000 + i).substring(1);
    }

    private static boolean isAscending(String all) {
        for (int i = 0; i < all.length() / WIDTH; i++) {
            if (Integer.parseInt(all.substring(i * WIDTH, (i + 1) * WIDTH)) != i) {
                return false;
            }
        }
        return true;
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_million_appends_per_key_arrive_in_order_by_key(Server.Kind kind) throws Exception {
        RedisClient client = coalescingClient(port(kind));
        LanesConnection<String, String> lanes = Lanes.of(client).count(4).by(Lane.KEY).connect();
        lanes.sync().flushall();
        String[] keys = { "order:a", "order:b" };
        List<Thread> writers = new ArrayList<>();
        ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
        for (String key : keys) {
            Thread writer = new Thread(() -> {
                try {
                    append(lanes, APPENDS, i -> key);
                } catch (Throwable e) {
                    failures.add(e);
                }
            });
            writer.start();
            writers.add(writer);
        }
        for (Thread writer : writers) {
            writer.join();
        }
        assertTrue(failures.isEmpty(), failures::toString);
        for (String key : keys) {
            String all = lanes.sync().get(key);
            assertEquals(APPENDS * WIDTH, all.length());
            assertTrue(isAscending(all), "order of " + key);
            lanes.sync().del(key);
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void batches_keep_the_order_of_a_key(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(4).by(Lane.KEY).connect();
        lanes.sync().del("batches");
        appendBatches(lanes, 50_000, "batches");
        String all = lanes.sync().get("batches");
        assertEquals(50_000 * WIDTH, all.length());
        assertTrue(isAscending(all));
    }

    /** Threads that take turns on one key: commands are executed in the order of submission, regardless of the thread. */
    @ParameterizedTest
    @MethodSource("kinds")
    void many_threads_in_turn_keep_the_order_of_a_key(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(4).by(Lane.KEY).connect();
        lanes.sync().del("turns");
        int appends = 100_000;
        int[] next = { 0 };
        List<Thread> writers = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            Thread writer = new Thread(() -> {
                while (true) {
                    synchronized (next) {
                        if (next[0] == appends) {
                            return;
                        }
                        lanes.async().append("turns", number(next[0]++));
                    }
                }
            });
            writer.start();
            writers.add(writer);
        }
        for (Thread writer : writers) {
            writer.join();
        }
        String all = lanes.sync().get("turns");
        assertEquals(appends * WIDTH, all.length());
        assertTrue(isAscending(all));
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void keys_with_the_same_tag_keep_their_order(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(8).by(Lane.KEY).connect();
        for (int i = 0; i < 20_000; i++) {
            lanes.async().set("{tag}:from", "v" + i);
            lanes.async().rename("{tag}:from", "{tag}:to" + i % 10);
        }
        // A rename that overtook its set would have failed, and the last set would still be there.
        assertNull(lanes.sync().get("{tag}:from"));
        assertEquals("v19999", lanes.sync().get("{tag}:to9"));
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void one_thread_keeps_its_order_over_all_keys_by_thread(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(4).by(Lane.THREAD).connect();
        // Renaming from one key to the next chains all keys: each step fails if it overtakes the previous one.
        lanes.sync().flushall();
        lanes.async().set("chain0", "value");
        for (int i = 0; i < 50_000; i++) {
            lanes.async().rename("chain" + i, "chain" + (i + 1));
        }
        assertEquals("value", lanes.sync().get("chain50000"));
    }

    /** Shows that the tests above can fail: without affinity the same appends are reordered. */
    @ParameterizedTest
    @MethodSource("kinds")
    void random_lanes_do_not_keep_order(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(4).by(Lane.RANDOM).connect();
        lanes.sync().del("mixed");
        append(lanes, 20_000, i -> "mixed");
        String all = lanes.sync().get("mixed");
        assertEquals(20_000 * WIDTH, all.length());
        assertFalse(isAscending(all));
    }
}
