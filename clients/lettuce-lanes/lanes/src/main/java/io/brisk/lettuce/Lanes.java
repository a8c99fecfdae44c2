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
 * Connects several shared connections and gives one back that spreads commands over them.
 *
 * <pre>{@code
 * RedisClient client = RedisClient.create("redis://localhost");
 * StatefulRedisConnection<String, String> c = Lanes.of(client).count(8).by(Lane.KEY).connect();
 * c.sync().set("k", "v");   // any thread, no pool, no close per call
 * }</pre>
 *
 * An object of this class is a recipe: each method changes it and returns it, and it may connect several times. It is
 * not for several threads at once; the connection is.
 */
public final class Lanes {

    /** More sockets to one server than this are a mistake rather than a wish. */
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

    private Duration probePatience;

    private Lanes(RedisClient client, RedisURI uri) {
        this.client = Objects.requireNonNull(client, "client");
        this.uri = uri;
        // An event loop provider of the user's may not know its size.
        this.count = Math.max(1, client.getResources().ioThreadPoolSize());
    }

    /**
     * Lanes to the address that the client was created with.
     *
     * @param client connects the lanes; closing it closes them
     * @return a recipe to go on with
     */
    public static Lanes of(RedisClient client) {
        return new Lanes(client, null);
    }

    /**
     * Lanes to an address.
     *
     * @param client connects the lanes; closing it closes them
     * @param uri where to; Sentinel addresses are fine
     * @return a recipe to go on with
     */
    public static Lanes of(RedisClient client, RedisURI uri) {
        return new Lanes(client, Objects.requireNonNull(uri, "uri"));
    }

    /**
     * How many real connections there are. Default: as many as the client has event loops, so that each lane has a loop
     * of its own. More are of use only to a server that serves connections on several cores.
     *
     * @param count from 1 to {@link #COUNT_MAX}
     * @return this
     */
    public Lanes count(int count) {
        if (count < 1 || count > COUNT_MAX) {
            throw new IllegalArgumentException("A count of lanes is from 1 to " + COUNT_MAX + ", not " + count);
        }
        this.count = count;
        return this;
    }

    /**
     * By which rule a command finds its lane. Default: {@link Lane#KEY}.
     *
     * @param rule says what order is kept
     * @return this
     */
    public Lanes by(Lane rule) {
        this.rule = Objects.requireNonNull(rule, "rule");
        return this;
    }

    /**
     * What happens to a command whose lane reconnects. Default: {@link WhenLost#WAIT} for {@link Lane#KEY}, otherwise
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
     * Whether pending commands and busy time are counted, for {@link LaneHealth} and {@link LanesMetrics}. It costs a
     * callback per command. {@link Lane#LEAST_PENDING} always counts. Default: false.
     *
     * @param counting whether to count
     * @return this
     */
    public Lanes counting(boolean counting) {
        this.counting = counting;
        return this;
    }

    /**
     * Whether commands that block, such as BLPOP or XREAD with BLOCK, are sent over a leased connection each instead of
     * being refused. Default: false. Transactions are always refused: they are several commands, and only the caller
     * knows which belong together; see {@link LanesConnection#lease()}.
     *
     * @param autoLease whether to lease
     * @return this
     */
    public Lanes autoLease(boolean autoLease) {
        this.autoLease = autoLease;
        return this;
    }

    /**
     * How many connections can be leased at a time, by callers and by {@link #autoLease(boolean)}. They are connected
     * when they are first needed. Default: 16.
     *
     * @param max at least 1
     * @return this
     */
    public Lanes leases(int max) {
        if (max < 1) {
            throw new IllegalArgumentException("At least 1 connection must be leasable, not " + max);
        }
        this.leasesMax = max;
        return this;
    }

    /**
     * Has each lane asked with PING whether it is alive; one that does not answer is dropped and connects again. So a
     * connection that died without a word, behind a firewall for instance, is noticed. The patience must be longer than
     * the longest command or stall of the server, for commands pending on a dropped lane are sent again if the client
     * reconnects automatically. Default: no probes.
     *
     * @param interval how often to ask, at least 10 ms
     * @param patience how long to wait for the answer, at least 10 ms
     * @return this
     */
    public Lanes probe(Duration interval, Duration patience) {
        this.probeInterval = atLeast10Ms("interval", interval);
        this.probePatience = atLeast10Ms("patience", patience);
        return this;
    }

    private static Duration atLeast10Ms(String what, Duration duration) {
        if (duration.toMillis() < 10) {
            throw new IllegalArgumentException("The " + what + " of probes is at least 10 ms, not " + duration);
        }
        return duration;
    }

    /**
     * Connects all lanes, for strings in UTF-8.
     *
     * @return a connection over them
     * @throws LanesException if one of them could not be connected; none is left open then
     */
    public LanesConnection<String, String> connect() {
        return connect(StringCodec.UTF8);
    }

    /**
     * Connects all lanes.
     *
     * @param codec translates keys and values
     * @param <K> type of keys
     * @param <V> type of values
     * @return a connection over them
     * @throws LanesException if one of them could not be connected; none is left open then
     */
    public <K, V> LanesConnection<K, V> connect(RedisCodec<K, V> codec) {
        Objects.requireNonNull(codec, "codec");
        WhenLost policy = whenLost != null ? whenLost : rule == Lane.KEY ? WhenLost.WAIT : WhenLost.MOVE;
        if (rule == Lane.KEY && policy == WhenLost.MOVE) {
            throw new IllegalArgumentException("Lane.KEY keeps order per key, which WhenLost.MOVE would break."
                    + " Choose WAIT or FAIL, or another rule.");
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
            connection.probeEvery(probeInterval, probePatience);
        }
        return connection;
    }

    /** All at once, so that many lanes over a slow network take one handshake's time. */
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
                    failure = new LanesException("Lane " + i + " of " + count + " could not be connected: "
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
