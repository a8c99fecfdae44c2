package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.testkit.Await;
import io.brisk.lettuce.testkit.FaultProxy;
import io.lettuce.core.RedisFuture;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/**
 * The Micrometer meters of lanes.
 */
class LanesMetricsTest extends ServerCase {

    @Test
    void meters_follow_the_lanes() throws Exception {
        FaultProxy proxy = ending(new FaultProxy(redis().port()));
        LanesConnection<String, String> lanes = Lanes.of(client(proxy.port())).count(1).autoLease(true).counting(true).connect();
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        new LanesMetrics(lanes, Tags.of("cache", "sessions")).bindTo(registry);
        assertEquals(1, registry.get("lettuce.lanes.connected").tag("lane", "0").tag("cache", "sessions").gauge().value());
        assertEquals(0, registry.get("lettuce.lanes.pending").gauge().value());

        proxy.refuse(true);
        proxy.links().get(0).cut();
        Await.until("it is lost", () -> registry.get("lettuce.lanes.connected").gauge().value() == 0);
        RedisFuture<String> waiting = lanes.async().ping();
        assertEquals(1, registry.get("lettuce.lanes.pending").gauge().value());
        proxy.refuse(false);
        assertEquals("PONG", waiting.get(20, TimeUnit.SECONDS));
        Await.until("it is answered", () -> registry.get("lettuce.lanes.pending").gauge().value() == 0);
        assertEquals(1, registry.get("lettuce.lanes.connected").gauge().value());
        assertEquals(1, registry.get("lettuce.lanes.reconnects").functionCounter().count());
        double busy = registry.get("lettuce.lanes.busy").gauge().value();
        assertTrue(busy >= 0 && busy <= 1, "busy " + busy);
    }

    @Test
    void without_counting_there_are_no_meters_of_counts() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        new LanesMetrics(lanes).bindTo(registry);
        assertEquals(2, registry.find("lettuce.lanes.connected").gauges().size());
        assertNull(registry.find("lettuce.lanes.pending").gauge());
    }

    @Test
    void the_busy_share_covers_the_time_since_the_last_query() {
        AtomicLong clock = new AtomicLong(5);
        AtomicLong busy = new AtomicLong(7);
        LanesMetrics.BusyShare share = new LanesMetrics.BusyShare(busy::get, clock::get);
        clock.addAndGet(2_000_000_000L);
        busy.addAndGet(500_000_000L);
        assertEquals(0.25, share.value());
        clock.addAndGet(10);
        assertEquals(0.25, share.value(), "asked again at once, it is the same");
        clock.addAndGet(4_000_000_000L);
        assertEquals(0, share.value());
    }
}
