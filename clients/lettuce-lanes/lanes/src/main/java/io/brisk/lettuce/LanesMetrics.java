package io.brisk.lettuce;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.Objects;
import java.util.function.LongSupplier;

/**
 * Micrometer meters for lanes: {@code new LanesMetrics(lanes).bindTo(registry)}.
 * <table>
 * <caption>Meters, each with the tag {@code lane}</caption>
 * <tr><th>name</th><th>kind</th><th>meaning</th></tr>
 * <tr><td>lettuce.lanes.connected</td><td>gauge</td><td>1 if the lane is connected, 0 while it reconnects</td></tr>
 * <tr><td>lettuce.lanes.reconnects</td><td>counter</td><td>number of reconnects</td></tr>
 * <tr><td>lettuce.lanes.pending</td><td>gauge</td><td>commands without a reply</td></tr>
 * <tr><td>lettuce.lanes.busy</td><td>gauge</td><td>fraction of time with pending commands, from 0 to 1</td></tr>
 * </table>
 * The last two are registered only with {@link Lanes#counting(boolean)}. If one lane is always busy while others are
 * idle, the keys are not spread evenly. If all lanes are always busy, more lanes could help.
 */
public final class LanesMetrics implements MeterBinder {

    private final LanesConnection<?, ?> connection;

    private final Tags tags;

    /**
     * Creates meters without additional tags.
     *
     * @param connection the connection whose lanes are measured
     */
    public LanesMetrics(LanesConnection<?, ?> connection) {
        this(connection, Tags.empty());
    }

    /**
     * Creates meters with additional tags.
     *
     * @param connection the connection whose lanes are measured
     * @param tags tags that are added to each meter, to distinguish several connections
     */
    public LanesMetrics(LanesConnection<?, ?> connection, Iterable<Tag> tags) {
        this.connection = Objects.requireNonNull(connection, "connection");
        this.tags = Tags.of(tags);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        for (LaneHealth lane : connection.lanes()) {
            Tags own = tags.and("lane", Integer.toString(lane.index()));
            Gauge.builder("lettuce.lanes.connected", lane, l -> l.isConnected() ? 1 : 0).tags(own)
                    .description("1 if the lane is connected, 0 while it reconnects").register(registry);
            FunctionCounter.builder("lettuce.lanes.reconnects", lane, LaneHealth::reconnects).tags(own)
                    .description("Number of reconnects of the lane").register(registry);
            if (lane.pending() < 0) {
                continue;
            }
            Gauge.builder("lettuce.lanes.pending", lane, LaneHealth::pending).tags(own)
                    .description("Commands without a reply").register(registry);
            BusyShare share = new BusyShare(lane::busyNanos, System::nanoTime);
            Gauge.builder("lettuce.lanes.busy", share, BusyShare::value).tags(own).strongReference(true)
                    .description("Fraction of time with pending commands").register(registry);
        }
    }

    /** The fraction of busy time since the last call, measured over windows of at least one second. */
    static final class BusyShare {

        private static final long WINDOW_NANOS_MIN = 1_000_000_000L;

        private final LongSupplier busyNanos;

        private final LongSupplier clock;

        private long windowBegan;

        private long busyThen;

        private double last;

        BusyShare(LongSupplier busyNanos, LongSupplier clock) {
            this.busyNanos = busyNanos;
            this.clock = clock;
            this.windowBegan = clock.getAsLong();
            this.busyThen = busyNanos.getAsLong();
        }

        synchronized double value() {
            long now = clock.getAsLong();
            long passed = now - windowBegan;
            if (passed >= WINDOW_NANOS_MIN) {
                long busy = busyNanos.getAsLong();
                last = Math.max(0, Math.min(1, (double) (busy - busyThen) / passed));
                windowBegan = now;
                busyThen = busy;
            }
            return last;
        }
    }
}
