package io.brisk.lettuce.bench;

import io.brisk.lettuce.FlushCoalescing;
import io.brisk.lettuce.Lane;
import io.brisk.lettuce.Lanes;
import io.brisk.lettuce.LeasePool;
import io.brisk.lettuce.LeasedConnection;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.support.ConnectionPoolSupport;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;

/**
 * The kinds of connection that are compared. Each has a name, for example {@code lanes-8-key-joined}.
 * <pre>
 * jedis-N                                 a pool of N Jedis connections
 * single, single-joined                   one Lettuce connection; commands without a time limit
 * single-expiry, single-expiry-joined     the same, with a time limit of 3 s
 * pool-N, poolraw-N, lease-N              Lettuce's pool with and without proxies; LeasePool
 * multi-N                                 a list of N Lettuce connections, one picked at random
 * lanes-N-RULE, lanes-N-RULE-joined       lanes; RULE is key, thread, least or random
 * </pre>
 * "Joined" means with FlushCoalescing.
 */
abstract class Mode implements AutoCloseable {

    private static final Duration EXPIRY = Duration.ofSeconds(3);

    private final Deque<Runnable> endings = new ArrayDeque<>();

    abstract String set(String key, String value) throws Exception;

    abstract String get(String key) throws Exception;

    @Override
    public void close() {
        while (!endings.isEmpty()) {
            endings.pop().run();
        }
    }

    final void ending(Runnable end) {
        endings.push(end);
    }

    static Mode of(String name, int port) {
        String[] words = name.split("-");
        boolean joined = name.endsWith("-joined");
        int count = words.length > 1 && Character.isDigit(words[1].charAt(0)) ? Integer.parseInt(words[1]) : 1;
        switch (words[0]) {
            case "jedis":
                return new Pooled(port, count);
            case "single":
                return new Shared(port, joined, name.contains("expiry"), c -> c.connect());
            case "lanes":
                Lane rule = words[2].equals("least") ? Lane.LEAST_PENDING : Lane.valueOf(words[2].toUpperCase(Locale.ROOT));
                return new Shared(port, joined, false, c -> Lanes.of(c).count(count).by(rule).connect());
            case "multi":
                return new Listed(port, joined, count);
            case "pool":
                return new Borrowed(port, count, true);
            case "poolraw":
                return new Borrowed(port, count, false);
            case "lease":
                return new Leased(port, count);
            default:
                throw new IllegalArgumentException("There is no mode " + name);
        }
    }

    final RedisClient client(int port, boolean joined, boolean expiry) {
        ClientResources.Builder builder = ClientResources.builder();
        if (joined) {
            builder.nettyCustomizer(FlushCoalescing.customizer(FlushCoalescing.LIMIT_DEFAULT));
        }
        ClientResources resources = builder.build();
        ending(() -> resources.shutdown().syncUninterruptibly());
        RedisClient client = RedisClient.create(resources, RedisURI.create("127.0.0.1", port));
        client.setOptions(ClientOptions.builder()
                .timeoutOptions(expiry ? TimeoutOptions.enabled(EXPIRY) : TimeoutOptions.create()).build());
        ending(client::shutdown);
        return client;
    }

    private interface Connector {
        StatefulRedisConnection<String, String> connect(RedisClient client);
    }

    /** One connection for all threads, plain or with lanes. */
    private static final class Shared extends Mode {

        private final StatefulRedisConnection<String, String> connection;

        Shared(int port, boolean joined, boolean expiry, Connector connector) {
            connection = connector.connect(client(port, joined, expiry));
        }

        @Override
        String set(String key, String value) {
            return connection.sync().set(key, value);
        }

        @Override
        String get(String key) {
            return connection.sync().get(key);
        }
    }

    /** A list of connections, one of which is picked at random for each command. */
    private static final class Listed extends Mode {

        private final List<StatefulRedisConnection<String, String>> connections = new ArrayList<>();

        Listed(int port, boolean joined, int count) {
            RedisClient client = client(port, joined, false);
            for (int i = 0; i < count; i++) {
                connections.add(client.connect());
            }
        }

        private StatefulRedisConnection<String, String> any() {
            return connections.get(ThreadLocalRandom.current().nextInt(connections.size()));
        }

        @Override
        String set(String key, String value) {
            return any().sync().set(key, value);
        }

        @Override
        String get(String key) {
            return any().sync().get(key);
        }
    }

    /** Jedis with its pool. */
    private static final class Pooled extends Mode {

        private final JedisPool pool;

        Pooled(int port, int count) {
            JedisPoolConfig config = new JedisPoolConfig();
            config.setMaxTotal(count);
            config.setMaxIdle(count);
            config.setMinIdle(count);
            pool = new JedisPool(config, "127.0.0.1", port);
            ending(pool::close);
        }

        @Override
        String set(String key, String value) {
            try (Jedis jedis = pool.getResource()) {
                return jedis.set(key, value);
            }
        }

        @Override
        String get(String key) {
            try (Jedis jedis = pool.getResource()) {
                return jedis.get(key);
            }
        }
    }

    /** Lettuce's pool, with or without proxies around borrowed connections. */
    private static final class Borrowed extends Mode {

        private final GenericObjectPool<StatefulRedisConnection<String, String>> pool;

        private final boolean wrapped;

        Borrowed(int port, int count, boolean wrapped) {
            RedisClient client = client(port, false, false);
            GenericObjectPoolConfig<StatefulRedisConnection<String, String>> config = new GenericObjectPoolConfig<>();
            config.setMaxTotal(count);
            config.setMaxIdle(count);
            config.setMinIdle(count);
            this.wrapped = wrapped;
            this.pool = ConnectionPoolSupport.createGenericObjectPool(client::connect, config, wrapped);
            ending(pool::close);
        }

        @Override
        String set(String key, String value) throws Exception {
            StatefulRedisConnection<String, String> connection = pool.borrowObject();
            try {
                return connection.sync().set(key, value);
            } finally {
                giveBack(connection);
            }
        }

        @Override
        String get(String key) throws Exception {
            StatefulRedisConnection<String, String> connection = pool.borrowObject();
            try {
                return connection.sync().get(key);
            } finally {
                giveBack(connection);
            }
        }

        private void giveBack(StatefulRedisConnection<String, String> connection) {
            if (wrapped) {
                connection.close();
            } else {
                pool.returnObject(connection);
            }
        }
    }

    /** {@link io.brisk.lettuce.LeasePool}. */
    private static final class Leased extends Mode {

        private static final Duration BORROW_TIMEOUT = Duration.ofSeconds(10);

        private final LeasePool<String, String> pool;

        Leased(int port, int count) {
            pool = LeasePool.of(client(port, false, false), count);
            ending(pool::close);
        }

        @Override
        String set(String key, String value) {
            try (LeasedConnection<String, String> own = pool.borrow(BORROW_TIMEOUT)) {
                return own.sync().set(key, value);
            }
        }

        @Override
        String get(String key) {
            try (LeasedConnection<String, String> own = pool.borrow(BORROW_TIMEOUT)) {
                return own.sync().get(key);
            }
        }
    }
}
