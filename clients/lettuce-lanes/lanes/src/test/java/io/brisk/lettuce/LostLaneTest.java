package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.testkit.Await;
import io.brisk.lettuce.testkit.FaultProxy;
import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Delay;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Lanes with cut, refused or silent connections: the fate of commands under each policy.
 */
class LostLaneTest extends ServerCase {

    /** Enough keys to use all three lanes. */
    private static final String[] KEYS = { "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11" };

    /** A client that reconnects every few milliseconds. */
    private RedisClient eager(int port) {
        ClientResources resources = ClientResources.builder().reconnectDelay(Delay.constant(Duration.ofMillis(20))).build();
        ending(() -> resources.shutdown().syncUninterruptibly());
        RedisClient client = RedisClient.create(resources, uri(port));
        ending(client::shutdown);
        return client;
    }

    private FaultProxy proxy(Server.Kind kind) {
        return ending(new FaultProxy(port(kind)));
    }

    private static long lost(LanesConnection<?, ?> lanes) {
        return lanes.lanes().stream().filter(lane -> !lane.isConnected()).count();
    }

    private static String number(int i) {
        return String.valueOf(10_000_000 + i).substring(1);
    }

    /** Cuts one lane, which stays down until the proxy accepts connections again. */
    private static void cutOne(FaultProxy proxy, LanesConnection<?, ?> lanes) {
        proxy.refuse(true);
        proxy.links().get(0).cut();
        Await.until("one lane is lost", () -> lost(lanes) == 1);
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void by_key_commands_wait_for_their_lane_and_keep_their_order(Server.Kind kind) throws Exception {
        FaultProxy proxy = proxy(kind);
        LanesConnection<String, String> lanes = Lanes.of(eager(proxy.port())).count(3).by(Lane.KEY).connect();
        lanes.sync().flushall();
        cutOne(proxy, lanes);
        RedisAsyncCommands<String, String> async = lanes.async();
        List<RedisFuture<Long>> appends = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            for (String key : KEYS) {
                appends.add(async.append(key, number(i)));
            }
        }
        Await.until("the other lanes answer", () -> appends.stream().filter(RedisFuture::isDone).count() > 0);
        assertTrue(appends.stream().anyMatch(append -> !append.isDone()));
        proxy.refuse(false);
        for (RedisFuture<Long> append : appends) {
            append.get(20, TimeUnit.SECONDS);
        }
        StringBuilder expected = new StringBuilder();
        for (int i = 0; i < 500; i++) {
            expected.append(number(i));
        }
        for (String key : KEYS) {
            assertEquals(expected.toString(), lanes.sync().get(key));
        }
        // On a busy machine, Lettuce may reconnect the lane twice.
        assertTrue(lanes.lanes().stream().mapToLong(LaneHealth::reconnects).sum() >= 1);
    }

    @ParameterizedTest
    @EnumSource(value = Lane.class, names = { "THREAD", "LEAST_PENDING", "RANDOM" })
    void other_rules_avoid_a_lost_lane(Lane rule) throws Exception {
        FaultProxy proxy = proxy(Server.Kind.REDIS);
        LanesConnection<String, String> lanes = Lanes.of(eager(proxy.port())).count(3).by(rule).connect();
        cutOne(proxy, lanes);
        List<Thread> callers = new ArrayList<>();
        AtomicInteger answered = new AtomicInteger();
        // Several threads, so that with THREAD one of them uses the lost lane.
        for (int t = 0; t < 6; t++) {
            Thread caller = new Thread(() -> {
                for (int i = 0; i < 50; i++) {
                    lanes.sync().set("k" + i, "v");
                    answered.incrementAndGet();
                }
            });
            caller.start();
            callers.add(caller);
        }
        for (Thread caller : callers) {
            caller.join(20_000);
        }
        assertEquals(300, answered.get());
        assertEquals(1, lost(lanes));
        assertTrue(lanes.isOpen());
        proxy.refuse(false);
        Await.until("the lane is back", () -> lost(lanes) == 0);
    }

    @ParameterizedTest
    @EnumSource(value = Lane.class, names = { "KEY", "THREAD" })
    void with_the_policy_fail_nothing_waits(Lane rule) throws Exception {
        FaultProxy proxy = proxy(Server.Kind.REDIS);
        LanesConnection<String, String> lanes = Lanes.of(eager(proxy.port())).count(1).by(rule).whenLost(WhenLost.FAIL)
                .connect();
        lanes.sync().set("k", "v");
        cutOne(proxy, lanes);
        assertFalse(lanes.isOpen());
        ExecutionException error = assertThrows(ExecutionException.class,
                () -> lanes.async().get("k").get(20, TimeUnit.SECONDS));
        assertInstanceOf(LanesException.class, error.getCause());
        assertTrue(error.getCause().getMessage().contains("Lane 0 of 1 lost its connection"));
        proxy.refuse(false);
        Await.until("the lane is back", lanes::isOpen);
        assertEquals("v", lanes.sync().get("k"));
    }

    @ParameterizedTest
    @EnumSource(Lane.class)
    void when_all_lanes_are_lost_commands_wait_for_them(Lane rule) throws Exception {
        FaultProxy proxy = proxy(Server.Kind.REDIS);
        LanesConnection<String, String> lanes = Lanes.of(eager(proxy.port())).count(3).by(rule).connect();
        lanes.sync().del("count");
        proxy.refuse(true);
        proxy.links().forEach(FaultProxy.Link::cut);
        Await.until("all lanes are lost", () -> lost(lanes) == 3);
        List<RedisFuture<Long>> counts = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            counts.add(lanes.async().incr("count"));
        }
        proxy.refuse(false);
        for (RedisFuture<Long> count : counts) {
            count.get(20, TimeUnit.SECONDS);
        }
        assertEquals("100", lanes.sync().get("count"));
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_lane_that_went_silent_is_noticed_and_replaced(Server.Kind kind) throws Exception {
        FaultProxy proxy = proxy(kind);
        LanesConnection<String, String> lanes = Lanes.of(eager(proxy.port())).count(2).by(Lane.KEY)
                .probe(Duration.ofMillis(50), Duration.ofMillis(500)).connect();
        lanes.sync().flushall();
        proxy.links().forEach(FaultProxy.Link::silence);
        List<RedisFuture<String>> sets = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            sets.add(lanes.async().set("silent" + i, "v" + i));
        }
        for (RedisFuture<String> set : sets) {
            assertEquals("OK", set.get(20, TimeUnit.SECONDS));
        }
        assertEquals("v7", lanes.sync().get("silent7"));
        assertEquals(2, lanes.lanes().stream().mapToLong(LaneHealth::reconnects).sum());
    }

    /** A probe must not close a lane that is only slow. */
    @ParameterizedTest
    @MethodSource("kinds")
    void a_lane_that_answers_is_left_alone(Server.Kind kind) throws Exception {
        FaultProxy proxy = proxy(kind);
        LanesConnection<String, String> lanes = Lanes.of(eager(proxy.port())).count(2)
                .probe(Duration.ofMillis(10), Duration.ofMillis(5000)).connect();
        long before = pings(lanes);
        Await.until("probes were answered", () -> pings(lanes) >= before + 2);
        assertEquals(2, proxy.accepted());
    }

    /** With a bounded queue, PING cannot be sent on a full lane, and a silent lane stays full. */
    @ParameterizedTest
    @MethodSource("kinds")
    void a_silent_lane_with_a_full_queue_is_replaced(Server.Kind kind) throws Exception {
        quiet();
        FaultProxy proxy = proxy(kind);
        RedisClient client = eager(proxy.port());
        client.setOptions(ClientOptions.builder().requestQueueSize(5).build());
        LanesConnection<String, String> lanes = Lanes.of(client).count(1)
                .probe(Duration.ofMillis(100), Duration.ofMillis(500)).connect();
        proxy.links().get(0).silence();
        RedisFuture<String> last;
        do {
            last = lanes.async().get("full");
        } while (!last.toCompletableFuture().isCompletedExceptionally());
        Await.until("the lane was replaced", () -> lanes.lanes().get(0).reconnects() == 1);
        // At first, the queue of the lane is full of commands that were sent again.
        Await.until("it answers", () -> {
            try {
                return "PONG".equals(lanes.sync().ping());
            } catch (RedisException e) {
                return false;
            }
        });
        assertEquals(2, proxy.accepted());
    }

    /** Lettuce logs each rejected command with a stack trace. */
    private void quiet() {
        Logger logger = Logger.getLogger("io.lettuce.core.protocol");
        logger.setLevel(Level.SEVERE);
        ending(() -> logger.setLevel(null));
    }

    /**
     * A lane that is full because it is busy still replies, and must not be considered silent. On a machine that is itself
     * slow, the replies may pause for longer than the timeout; only then may the lane be replaced.
     */
    @ParameterizedTest
    @MethodSource("kinds")
    void a_busy_lane_with_a_full_queue_is_left_alone(Server.Kind kind) throws Exception {
        quiet();
        FaultProxy proxy = proxy(kind);
        RedisClient client = eager(proxy.port());
        client.setOptions(ClientOptions.builder().requestQueueSize(1).build());
        Duration timeout = Duration.ofMillis(500);
        LanesConnection<String, String> lanes = Lanes.of(client).count(1).probe(Duration.ofMillis(10), timeout).connect();
        AtomicInteger refused = new AtomicInteger();
        AtomicInteger answered = new AtomicInteger();
        AtomicLong lastAnswer = new AtomicLong(System.nanoTime());
        AtomicLong longestPause = new AtomicLong();
        Runnable answer = () -> {
            long now = System.nanoTime();
            longestPause.accumulateAndGet(now - lastAnswer.getAndSet(now), Math::max);
        };
        AtomicBoolean enough = new AtomicBoolean();
        Thread caller = new Thread(() -> {
            while (!enough.get()) {
                // Any room in the queue is used immediately.
                lanes.async().get("busy").whenComplete((value, error) -> {
                    (error == null ? answered : refused).incrementAndGet();
                    if (error == null) {
                        answer.run();
                    }
                });
            }
        });
        caller.start();
        try {
            // A round of the probe takes half a second, so this covers several.
            LanesConnection<String, String> clock = Lanes.of(eager(proxy.port())).count(1)
                    .probe(Duration.ofMillis(10), timeout).connect();
            long before = pings(clock);
            Await.until("rounds passed", () -> pings(clock) >= before + 4);
        } finally {
            enough.set(true);
            caller.join();
        }
        assertTrue(refused.get() > 0 && answered.get() > 0, refused + " refused, " + answered + " answered");
        answer.run();
        if (longestPause.get() < timeout.toNanos()) {
            assertEquals(0, lanes.lanes().get(0).reconnects());
        }
    }

    /** A PING would not be flushed either, so it would not show the state of the lane. */
    @ParameterizedTest
    @MethodSource("kinds")
    void a_lane_whose_commands_are_held_back_is_left_alone(Server.Kind kind) throws Exception {
        FaultProxy proxy = proxy(kind);
        RedisClient client = eager(proxy.port());
        LanesConnection<String, String> lanes = Lanes.of(client).count(2)
                .probe(Duration.ofMillis(10), Duration.ofMillis(50)).connect();
        LanesConnection<String, String> clock = Lanes.of(eager(port(kind))).count(1)
                .probe(Duration.ofMillis(50), Duration.ofMillis(500)).connect();
        lanes.setAutoFlushCommands(false);
        RedisFuture<String> held = lanes.async().set("held", "v");
        long before = pings(clock);
        Await.until("rounds passed", () -> pings(clock) >= before + 3);
        assertFalse(held.isDone());
        lanes.flushCommands();
        assertEquals("OK", held.get(20, TimeUnit.SECONDS));
        assertEquals(2, proxy.accepted());
    }

    private static long pings(LanesConnection<String, String> lanes) {
        for (String line : lanes.sync().info("commandstats").split("\r\n")) {
            if (line.startsWith("cmdstat_ping:calls=")) {
                return Long.parseLong(line.substring(line.indexOf('=') + 1, line.indexOf(',')));
            }
        }
        return 0;
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void listeners_receive_the_events_of_each_lane(Server.Kind kind) {
        FaultProxy proxy = proxy(kind);
        LanesConnection<String, String> lanes = Lanes.of(eager(proxy.port())).count(3).connect();
        AtomicInteger lost = new AtomicInteger();
        AtomicInteger back = new AtomicInteger();
        lanes.addListener(new RedisConnectionStateListener() {

            @Override
            public void onRedisConnected(RedisChannelHandler<?, ?> connection, SocketAddress address) {
                back.incrementAndGet();
            }

            @Override
            public void onRedisDisconnected(RedisChannelHandler<?, ?> connection) {
                lost.incrementAndGet();
            }
        });
        proxy.links().forEach(FaultProxy.Link::cut);
        Await.until("each lane was lost and is back", () -> lost.get() == 3 && back.get() == 3);
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_server_that_comes_back_is_used_again(Server.Kind kind) throws Exception {
        int port = Server.freePort();
        Server first = Server.start(kind, port);
        LanesConnection<String, String> lanes = Lanes.of(eager(port)).count(4).connect();
        lanes.sync().set("k", "before");
        first.shutDown();
        first.close();
        Await.until("the server is gone", () -> lost(lanes) == 4);
        RedisFuture<String> waiting = lanes.async().set("k", "after");
        ending(Server.start(kind, port));
        assertEquals("OK", waiting.get(20, TimeUnit.SECONDS));
        Await.until("all lanes are back", () -> lost(lanes) == 0);
        assertEquals("after", lanes.sync().get("k"));
    }
}
