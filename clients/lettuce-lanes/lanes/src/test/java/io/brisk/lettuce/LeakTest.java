package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.testkit.Await;
import io.brisk.lettuce.testkit.FaultProxy;
import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.resource.ClientResources;
import io.netty.util.HashedWheelTimer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * Closing releases all resources: sockets, counters, and those held by commands.
 */
class LeakTest extends ServerCase {

    private static long connected(Server server, RedisClient observer) {
        // One of the connections belongs to the observer.
        return observer.connect().sync().clientList().lines().count();
    }

    @Test
    void each_close_releases_its_sockets() {
        Server own = ending(Server.start(Server.Kind.REDIS));
        RedisClient observer = client(own.port());
        long before = connected(own, observer);
        RedisClient client = client(own.port());
        for (int round = 0; round < 30; round++) {
            LanesConnection<String, String> lanes = Lanes.of(client).count(4).autoLease(true).leases(2)
                    .probe(Duration.ofMillis(20), Duration.ofMillis(1000)).connect();
            lanes.sync().rpush("list", "v");
            lanes.sync().blpop(1, "list");
            lanes.lease().close();
            lanes.close();
        }
        // The observer opens one connection per check.
        long[] looks = { 0 };
        Await.until("all sockets are closed", () -> connected(own, observer) - ++looks[0] <= before);
    }

    @Test
    void a_connect_that_fails_half_way_leaves_nothing_open() {
        FaultProxy proxy = ending(new FaultProxy(redis().port()));
        RedisClient client = client(proxy.port());
        client.setOptions(ClientOptions.builder()
                .socketOptions(SocketOptions.builder().connectTimeout(Duration.ofSeconds(2)).build()).build());
        LanesConnection<String, String> first = Lanes.of(client).count(2).connect();
        proxy.refuse(true);
        assertThrows(LanesException.class, () -> Lanes.of(client).count(3).connect());
        first.close();
        Await.until("all links are closed", () -> proxy.links().isEmpty());
    }

    @Test
    void counters_are_exact_after_replies_errors_timeouts_and_cancellations() throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(3).by(Lane.LEAST_PENDING).connect();
        lanes.sync().set("text", "abc");
        List<RedisFuture<?>> futures = new ArrayList<>();
        for (int i = 0; i < 3000; i++) {
            futures.add(i % 3 == 0 ? lanes.async().incr("text") : lanes.async().set("k" + i, "v"));
            if (i % 5 == 0) {
                futures.get(i).cancel(true);
            }
        }
        Await.until("all ended", () -> futures.stream().allMatch(RedisFuture::isDone));
        Await.until("nothing is pending", () -> lanes.lanes().stream().allMatch(lane -> lane.pending() == 0));
        long busy = lanes.lanes().stream().mapToLong(LaneHealth::busyNanos).sum();
        assertTrue(busy > 0);
        // The busy time of idle lanes does not grow.
        assertEquals(busy, lanes.lanes().stream().mapToLong(LaneHealth::busyNanos).sum());
    }

    @Test
    void closing_fails_waiting_commands_and_rejects_new_ones() throws Exception {
        FaultProxy proxy = ending(new FaultProxy(redis().port()));
        LanesConnection<String, String> lanes = Lanes.of(client(proxy.port())).count(2).connect();
        proxy.links().forEach(FaultProxy.Link::silence);
        List<RedisFuture<String>> waiting = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            waiting.add(lanes.async().get("k" + i));
        }
        lanes.close();
        for (RedisFuture<String> one : waiting) {
            assertTrue(one.await(20, TimeUnit.SECONDS), "ended");
        }
        assertThrows(Exception.class, () -> lanes.async().get("k").get(20, TimeUnit.SECONDS));
        assertThrows(LanesException.class, lanes::lease);
    }

    /** Shutting the client down closes every connection, and no task continues. */
    @Test
    void a_probe_ends_with_the_client() {
        HashedWheelTimer timer = new HashedWheelTimer();
        ending(() -> timer.stop());
        ClientResources resources = ClientResources.builder().timer(timer).build();
        ending(() -> resources.shutdown().syncUninterruptibly());
        RedisClient client = RedisClient.create(resources, uri(redis().port()));
        Lanes.of(client).count(2).probe(Duration.ofMillis(10), Duration.ofMillis(10)).connect();
        assertTrue(timer.pendingTimeouts() > 0);
        client.shutdown();
        // Between two probes, no timeout is scheduled for a moment, so look several times.
        int[] looks = { 0 };
        Await.until("no timeout is left", () -> (looks[0] = timer.pendingTimeouts() == 0 ? looks[0] + 1 : 0) == 100);
    }

    /** If a server does not reply at first, all attempts continue in parallel and delay no other reconnect. */
    @Test
    void all_lanes_connect_at_once() throws Exception {
        ClientResources resources = ClientResources.builder().computationThreadPoolSize(2).build();
        ending(() -> resources.shutdown().syncUninterruptibly());
        try (ServerSocket mute = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            Set<Socket> attempts = ConcurrentHashMap.newKeySet();
            Thread accepting = new Thread(() -> {
                try {
                    while (true) {
                        attempts.add(mute.accept());
                    }
                } catch (IOException e) {
                    // The test has ended.
                }
            });
            accepting.start();
            RedisClient client = RedisClient.create(resources, uri(mute.getLocalPort()));
            CompletableFuture<Object> connecting = CompletableFuture.supplyAsync(() -> Lanes.of(client).count(6).connect());
            Await.until("all six connect", () -> attempts.size() == 6);
            for (Socket attempt : attempts) {
                attempt.close();
            }
            CompletionException error = assertThrows(CompletionException.class,
                    () -> connecting.orTimeout(20, TimeUnit.SECONDS).join());
            assertInstanceOf(LanesException.class, error.getCause());
            client.shutdown();
        }
    }

    /** The client's resources stay alive, so nothing else would stop work that is started after the shutdown. */
    @Test
    void nothing_is_leased_after_the_client_has_been_shut_down() {
        ClientResources resources = ClientResources.create();
        ending(() -> resources.shutdown().syncUninterruptibly());
        RedisClient client = RedisClient.create(resources, uri(redis().port()));
        LanesConnection<String, String> lanes = Lanes.of(client).count(2).autoLease(true).connect();
        client.shutdown();
        RedisFuture<?> pop = lanes.async().blpop(1, "k");
        assertInstanceOf(LanesException.class,
                assertThrows(ExecutionException.class, () -> pop.get(20, TimeUnit.SECONDS)).getCause());
        assertThrows(LanesException.class, lanes::lease);
    }

    @Test
    void a_client_that_was_shut_down_is_the_reason_given() {
        RedisClient client = client(redis().port());
        client.shutdown();
        assertThrows(LanesException.class, () -> Lanes.of(client).count(2).connect());
        assertThrows(LanesException.class, () -> Lanes.of(client, uri(redis().port())).count(2).connect());
        assertThrows(LanesException.class, () -> ending(LeasePool.of(client, 1)).borrow(Duration.ofMillis(1)));
    }

    /** The thread that completes the last pending command may record it after another thread has sent the next one. */
    @Test
    void a_lane_stays_busy_even_if_a_completion_is_recorded_late() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(1).counting(true).connect();
        RealLane<String, String> lane = (RealLane<String, String>) lanes.lanes().get(0);
        AsyncCommand<String, String, String> pending = command();
        lane.count(pending);
        lane.noteBusyOrIdle();
        long before = lane.busyNanos();
        Await.until("it becomes busier", () -> lane.busyNanos() > before);
        pending.complete();
        lane.noteBusyOrIdle();
        assertEquals(lane.busyNanos(), lane.busyNanos());
    }

    private static AsyncCommand<String, String, String> command() {
        return new AsyncCommand<>(new Command<>(CommandType.PING, new StatusOutput<>(StringCodec.UTF8)));
    }
}
