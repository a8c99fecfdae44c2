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
 * Meters of lanes for Micrometer: {@code new LanesMetrics(lanes).bindTo(registry)}.
 * <table>
 * <caption>Meters, each with the tag {@code lane}</caption>
 * <tr><th>name</th><th>kind</th><th>meaning</th></tr>
 * <tr><td>lettuce.lanes.connected</td><td>gauge</td><td>1, or 0 while it reconnects</td></tr>
 * <tr><td>lettuce.lanes.reconnects</td><td>counter</td><td>how often it connected again</td></tr>
 * <tr><td>lettuce.lanes.pending</td><td>gauge</td><td>commands that are not answered</td></tr>
 * <tr><td>lettuce.lanes.busy</td><td>gauge</td><td>share of the time with commands pending, from 0 to 1</td></tr>
 * </table>
 * The last two exist if the lanes count, see {@link Lanes#counting(boolean)}. A lane that is always busy while others
 * idle shows keys that are not spread; all lanes always busy, that more of them could help.
 */
public final class LanesMetrics implements MeterBinder {

    private final LanesConnection<?, ?> connection;

    private final Tags tags;

    /**
     * Meters without further tags.
     *
     * @param connection whose lanes to show
     */
    public LanesMetrics(LanesConnection<?, ?> connection) {
        this(connection, Tags.empty());
    }

    /**
     * Meters with tags of the user's.
     *
     * @param connection whose lanes to show
     * @param tags are added to each meter, to tell several connections apart
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
                    .description("How often the lane connected again").register(registry);
            if (lane.pending() < 0) {
                continue;
            }
            Gauge.builder("lettuce.lanes.pending", lane, LaneHealth::pending).tags(own)
                    .description("Commands that are not answered").register(registry);
            BusyShare share = new BusyShare(lane::busyNanos, System::nanoTime);
            Gauge.builder("lettuce.lanes.busy", share, BusyShare::value).tags(own).strongReference(true)
                    .description("Share of the time with commands pending").register(registry);
        }
    }

    /** The share of busy time since it was last asked for; asked often, over windows of a second at least. */
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
