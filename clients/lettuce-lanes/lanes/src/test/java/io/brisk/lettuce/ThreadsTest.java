package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.RedisClient;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.channel.Channel;
import io.netty.channel.EventLoop;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The distribution of lanes over event loops, and of threads' commands over lanes.
 */
class ThreadsTest extends ServerCase {

    @Test
    void each_lane_has_an_event_loop_of_its_own() {
        Set<EventLoop> loops = ConcurrentHashMap.newKeySet();
        ClientResources resources = ClientResources.builder().ioThreadPoolSize(4).nettyCustomizer(new NettyCustomizer() {

            @Override
            public void afterChannelInitialized(Channel channel) {
                loops.add(channel.eventLoop());
            }
        }).build();
        ending(() -> resources.shutdown().syncUninterruptibly());
        RedisClient client = RedisClient.create(resources, uri(redis().port()));
        ending(client::shutdown);
        LanesConnection<String, String> lanes = Lanes.of(client).connect();
        assertEquals(4, lanes.lanes().size(), "one lane per event loop by default");
        assertEquals(4, loops.size());
    }

    @Test
    void a_connection_describes_its_lanes() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        String lane = "(connected, 0 reconnects)";
        assertEquals("LanesConnection[2 of 2 lanes connected, 0 leased, [lane 0 " + lane + ", lane 1 " + lane + "]]",
                lanes.toString());
        lanes.close();
        assertEquals("lane 1 (closed, 0 reconnects)", lanes.lanes().get(1).toString());
    }

    @Test
    void keys_spread_over_the_lanes() {
        Server own = ending(Server.start(Server.Kind.REDIS));
        LanesConnection<String, String> lanes = Lanes.of(client(own.port())).count(4).by(Lane.KEY).connect();
        for (int i = 0; i < 400; i++) {
            lanes.sync().set("spread" + i, "v");
        }
        // The last command of each connection was a SET, so each lane was used.
        assertEquals(3, lanes.sync().clientList().lines().filter(line -> line.contains("cmd=set")).count());
    }

    @Test
    void pending_commands_spread_by_least_pending() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(4).by(Lane.LEAST_PENDING).connect();
        lanes.setAutoFlushCommands(false);
        for (int i = 0; i < 400; i++) {
            lanes.async().set("same", "v");
        }
        lanes.lanes().forEach(lane -> assertEquals(100, lane.pending()));
        lanes.flushCommands();
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_thousand_virtual_threads_share_lanes(Server.Kind kind) throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 21, "virtual threads exist since Java 21");
        LanesConnection<String, String> lanes = Lanes.of(coalescingClient(port(kind))).count(4).connect();
        lanes.sync().del("virtual");
        // The test is compiled for Java 17, so the method is called by reflection.
        ExecutorService threads = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        List<Future<?>> tasks = new ArrayList<>();
        for (int t = 0; t < 1000; t++) {
            tasks.add(threads.submit(() -> {
                for (int i = 0; i < 20; i++) {
                    lanes.sync().incr("virtual");
                }
            }));
        }
        for (Future<?> task : tasks) {
            task.get(60, TimeUnit.SECONDS);
        }
        threads.shutdown();
        assertTrue(threads.awaitTermination(20, TimeUnit.SECONDS));
        assertEquals("20000", lanes.sync().get("virtual"));
    }
}
