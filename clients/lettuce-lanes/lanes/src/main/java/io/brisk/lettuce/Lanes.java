package io.brisk.lettuce;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * Opens several shared connections and returns one connection object that spreads commands over them.
 *
 * <pre>{@code
 * RedisClient client = RedisClient.create("redis://localhost");
 * StatefulRedisConnection<String, String> c = Lanes.of(client).count(8).by(Lane.KEY).connect();
 * c.sync().set("k", "v");   // any thread, no pool, no close per call
 * }</pre>
 *
 * This class is a builder: each method changes it and returns it, and {@code connect} may be called several times. The
 * builder is not thread-safe; the connection is.
 */
public final class Lanes {

    /** The maximum number of lanes. A larger number is rejected as a mistake. */
    public static final int COUNT_MAX = 1024;

    private static final int LEASES_DEFAULT = 16;

    private final RedisClient client;

    private final RedisURI uri;

    private int count;

    private Lane rule = Lane.KEY;

    private WhenLost whenLost;

    private boolean counting;

    private boolean autoLease;

    private int leasesMax = LEASES_DEFAULT;

    private Duration probeInterval;

    private Duration probeTimeout;

    private Lanes(RedisClient client, RedisURI uri) {
        this.client = Objects.requireNonNull(client, "client");
        this.uri = uri;
        // A custom event loop provider may report no size.
        this.count = Math.max(1, client.getResources().ioThreadPoolSize());
    }

    /**
     * Creates a builder for the address that the client was created with.
     *
     * @param client opens the connections; shutting it down closes them
     * @return a builder
     */
    public static Lanes of(RedisClient client) {
        return new Lanes(client, null);
    }

    /**
     * Creates a builder for an address.
     *
     * @param client opens the connections; shutting it down closes them
     * @param uri the address; may name Sentinel
     * @return a builder
     */
    public static Lanes of(RedisClient client, RedisURI uri) {
        return new Lanes(client, Objects.requireNonNull(uri, "uri"));
    }

    /**
     * Sets the number of connections. Default: the number of event loops of the client, which Lettuce sets to the
     * number of processors, but at least 2. With this number, each lane has its own event loop, and more lanes bring no
     * benefit.
     *
     * @param count from 1 to {@link #COUNT_MAX}
     * @return this
     */
    public Lanes count(int count) {
        if (count < 1 || count > COUNT_MAX) {
            throw new IllegalArgumentException("The number of lanes must be from 1 to " + COUNT_MAX + ", not " + count);
        }
        this.count = count;
        return this;
    }

    /**
     * Sets the rule that selects the lane of a command. Default: {@link Lane#KEY}.
     *
     * @param rule the rule, which decides the order that is guaranteed
     * @return this
     */
    public Lanes by(Lane rule) {
        this.rule = Objects.requireNonNull(rule, "rule");
        return this;
    }

    /**
     * Sets what happens to a command whose lane is reconnecting. Default: {@link WhenLost#WAIT} for {@link Lane#KEY}, otherwise
     * {@link WhenLost#MOVE}.
     *
     * @param whenLost the policy
     * @return this
     */
    public Lanes whenLost(WhenLost whenLost) {
        this.whenLost = Objects.requireNonNull(whenLost, "whenLost");
        return this;
    }

    /**
     * Sets whether pending commands and busy time are counted, for {@link LaneHealth} and {@link LanesMetrics}.
     * Counting costs one callback per command. {@link Lane#LEAST_PENDING} always counts. Default: false.
     *
     * @param counting whether to count
     * @return this
     */
    public Lanes counting(boolean counting) {
        this.counting = counting;
        return this;
    }

    /**
     * Sets whether each blocking command, for example BLPOP or XREAD with BLOCK, is sent on a leased connection instead of
     * being rejected. Default: false. Transactions are always rejected: they consist of several commands, and only the
     * caller knows which belong together; see {@link LanesConnection#lease()}.
     *
     * @param autoLease whether to lease
     * @return this
     */
    public Lanes autoLease(boolean autoLease) {
        this.autoLease = autoLease;
        return this;
    }

    /**
     * Sets how many connections can be leased at the same time, by callers and by {@link #autoLease(boolean)}. They are
     * opened when they are first needed. Default: 16.
     *
     * @param max at least 1
     * @return this
     */
    public Lanes leases(int max) {
        if (max < 1) {
            throw new IllegalArgumentException("The maximum number of leases must be at least 1, not " + max);
        }
        this.leasesMax = max;
        return this;
    }

    /**
     * Sends PING on each lane at an interval. A lane that does not reply is closed and reconnects, so a connection that
     * died silently, for example in a firewall, is detected. The timeout must be longer than the longest command or
     * stall of the server, since pending commands of a closed lane are sent again if the client reconnects
     * automatically. Default: no probes.
     *
     * @param interval how often to send PING, at least 10 ms
     * @param timeout how long to wait for the reply, at least 10 ms
     * @return this
     */
    public Lanes probe(Duration interval, Duration timeout) {
        this.probeInterval = atLeast10Ms("interval", interval);
        this.probeTimeout = atLeast10Ms("timeout", timeout);
        return this;
    }

    private static Duration atLeast10Ms(String what, Duration duration) {
        if (duration.toMillis() < 10) {
            throw new IllegalArgumentException("The " + what + " of probes must be at least 10 ms, not " + duration);
        }
        return duration;
    }

    /**
     * Opens all lanes, with UTF-8 strings as keys and values.
     *
     * @return the connection
     * @throws LanesException if a lane could not be opened; the others are then closed
     */
    public LanesConnection<String, String> connect() {
        return connect(StringCodec.UTF8);
    }

    /**
     * Opens all lanes.
     *
     * @param codec encodes and decodes keys and values
     * @param <K> type of keys
     * @param <V> type of values
     * @return the connection
     * @throws LanesException if a lane could not be opened; the others are then closed
     */
    public <K, V> LanesConnection<K, V> connect(RedisCodec<K, V> codec) {
        Objects.requireNonNull(codec, "codec");
        WhenLost policy = whenLost != null ? whenLost : rule == Lane.KEY ? WhenLost.WAIT : WhenLost.MOVE;
        if (rule == Lane.KEY && policy == WhenLost.MOVE) {
            throw new IllegalArgumentException("Lane.KEY guarantees the order per key, which WhenLost.MOVE would break."
                    + " Use WAIT or FAIL, or another rule.");
        }
        LeasePool<K, V> leases = uri == null ? LeasePool.of(client, codec, leasesMax)
                : LeasePool.of(client, codec, uri, leasesMax);
        boolean counts = counting || rule == Lane.LEAST_PENDING;
        List<RealLane<K, V>> lanes = new ArrayList<>(count);
        for (StatefulRedisConnection<K, V> connection : connectAll(leases)) {
            lanes.add(new RealLane<>(lanes.size(), connection, counts));
        }
        LanesConnection<K, V> connection = new LanesConnection<>(lanes, new Choice<>(rule, policy, lanes), codec, leases,
                autoLease);
        if (probeInterval != null) {
            connection.probeEvery(probeInterval, probeTimeout);
        }
        return connection;
    }

    /** Opens all lanes at the same time, so that many lanes over a slow network take no longer than one. */
    private <K, V> List<StatefulRedisConnection<K, V>> connectAll(LeasePool<K, V> leases) {
        List<CompletableFuture<StatefulRedisConnection<K, V>>> attempts = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            attempts.add(leases.connect());
        }
        List<StatefulRedisConnection<K, V>> connected = new ArrayList<>(count);
        LanesException failure = null;
        for (int i = 0; i < count; i++) {
            try {
                connected.add(attempts.get(i).join());
            } catch (CompletionException e) {
                if (failure == null) {
                    failure = new LanesException("Lane " + i + " of " + count + " could not be opened: "
                            + e.getCause().getMessage(), e.getCause());
                }
            }
        }
        if (failure != null) {
            connected.forEach(StatefulRedisConnection::closeAsync);
            throw failure;
        }
        return connected;
    }
}
