package io.brisk.lettuce.spring;

import io.brisk.lettuce.Lane;
import io.brisk.lettuce.Lanes;
import io.brisk.lettuce.LanesConnection;
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import java.nio.ByteBuffer;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.RedisStaticMasterReplicaConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * A Lettuce connection factory whose shared connection has several lanes.
 *
 * <pre>{@code
 * @Bean
 * LanesLettuceConnectionFactory redis() {
 *     LanesLettuceConnectionFactory factory = new LanesLettuceConnectionFactory(
 *             new RedisStandaloneConfiguration("localhost"), LettuceClientConfiguration.defaultConfiguration());
 *     factory.setLanes(8);
 *     return factory;
 * }
 * }</pre>
 *
 * Templates, repositories and caches share the lanes instead of a single connection. Spring still uses separate
 * connections for transactions, blocking commands, pipelines, subscriptions and other databases. The imperative and the
 * reactive API have separate lanes, opened on first use.
 * <p>
 * The factory supports a standalone server and the master that Sentinel names. Clusters and reads from replicas already
 * use several connections; they are rejected when the factory is initialized.
 */
public class LanesLettuceConnectionFactory extends LettuceConnectionFactory {

    private final Object monitor = new Object();

    private final boolean masterReplica;

    private int lanes;

    private Lane rule = Lane.KEY;

    private LanesConnection<byte[], byte[]> imperative;

    private LanesConnection<ByteBuffer, ByteBuffer> reactive;

    /**
     * Creates a factory with as many lanes as the client has event loops.
     *
     * @param configuration the server: standalone, a socket, or Sentinel
     * @param clientConfiguration timeouts, TLS and other client options
     */
    public LanesLettuceConnectionFactory(RedisConfiguration configuration, LettuceClientConfiguration clientConfiguration) {
        super(configuration, clientConfiguration);
        this.masterReplica = configuration instanceof RedisStaticMasterReplicaConfiguration;
    }

    /**
     * Creates a factory with lanes for the same server as another factory, and with its settings. The other factory is
     * neither started nor stopped. Its executor, which only clusters use, and its flush policy for pipelines cannot be read
     * and are not copied.
     *
     * @param plain the factory whose settings are copied; not yet initialized
     * @return a factory, which must be initialized like any bean
     * @throws IllegalStateException if the server cannot be read, as with a static list of a master and replicas
     */
    public static LanesLettuceConnectionFactory like(LettuceConnectionFactory plain) {
        LanesLettuceConnectionFactory factory = new LanesLettuceConnectionFactory(configurationOf(plain),
                plain.getClientConfiguration());
        factory.setValidateConnection(plain.getValidateConnection());
        factory.setShareNativeConnection(plain.getShareNativeConnection());
        factory.setEagerInitialization(plain.getEagerInitialization());
        factory.setConvertPipelineAndTxResults(plain.getConvertPipelineAndTxResults());
        factory.setPhase(plain.getPhase());
        factory.setAutoStartup(plain.isAutoStartup());
        factory.setEarlyStartup(plain.isEarlyStartup());
        return factory;
    }

    private static RedisConfiguration configurationOf(LettuceConnectionFactory plain) {
        if (plain.getClusterConfiguration() != null) {
            return plain.getClusterConfiguration();
        }
        if (plain.getSentinelConfiguration() != null) {
            return plain.getSentinelConfiguration();
        }
        if (plain.getSocketConfiguration() != null) {
            return plain.getSocketConfiguration();
        }
        if (!hasStandaloneConfiguration(plain)) {
            throw new IllegalStateException("Lanes cannot replace this LettuceConnectionFactory, because its server cannot be"
                    + " read, as with RedisStaticMasterReplicaConfiguration. Lanes support one server: declare a"
                    + " LanesLettuceConnectionFactory with its configuration, or remove brisk.lettuce.lanes.");
        }
        return plain.getStandaloneConfiguration();
    }

    /**
     * Returns whether a factory uses its standalone configuration. A factory with another kind of configuration also
     * has one, for localhost. The difference is that a change to the configuration in use is visible through the
     * factory.
     */
    private static boolean hasStandaloneConfiguration(LettuceConnectionFactory plain) {
        RedisStandaloneConfiguration standalone = plain.getStandaloneConfiguration();
        int database = standalone.getDatabase();
        standalone.setDatabase(database + 1);
        boolean follows = plain.getDatabase() == database + 1;
        standalone.setDatabase(database);
        return follows && plain.getDatabase() == database;
    }

    /**
     * Sets the number of lanes of the shared connection. Must be called before the factory is initialized.
     *
     * @param lanes from 1 to {@link Lanes#COUNT_MAX}
     */
    public void setLanes(int lanes) {
        if (lanes < 1 || lanes > Lanes.COUNT_MAX) {
            throw new IllegalArgumentException("The number of lanes must be from 1 to " + Lanes.COUNT_MAX + ", not " + lanes);
        }
        this.lanes = lanes;
    }

    /**
     * Sets the rule that selects the lane of a command. Default: {@link Lane#KEY}. Must be called before the factory is
     * initialized.
     *
     * @param rule the rule, which decides the order that is guaranteed
     */
    public void setRule(Lane rule) {
        this.rule = rule;
    }

    @Override
    public void afterPropertiesSet() {
        if (isClusterAware()) {
            throw new IllegalStateException("Lanes support one server; a cluster already has a connection per node."
                    + " Use LettuceConnectionFactory.");
        }
        if (masterReplica) {
            throw new IllegalStateException("Lanes support one server, not a list of a master and replicas."
                    + " Use LettuceConnectionFactory.");
        }
        if (getClientConfiguration().getReadFrom().isPresent()) {
            throw new IllegalStateException("Lanes do not support ReadFrom, which selects a master or replicas."
                    + " Use LettuceConnectionFactory.");
        }
        super.afterPropertiesSet();
    }

    /**
     * Returns the lanes of the imperative API, to query their health or to register meters. Opens them if necessary.
     *
     * @return the shared connection
     */
    public LanesConnection<byte[], byte[]> lanes() {
        synchronized (monitor) {
            if (imperative == null) {
                imperative = connect(ByteArrayCodec.INSTANCE);
            }
            return imperative;
        }
    }

    private LanesConnection<ByteBuffer, ByteBuffer> reactiveLanes() {
        synchronized (monitor) {
            if (reactive == null) {
                reactive = connect(ByteBufferCodec.INSTANCE);
            }
            return reactive;
        }
    }

    private <K> LanesConnection<K, K> connect(RedisCodec<K, K> codec) {
        AbstractRedisClient client = getRequiredNativeClient();
        if (!(client instanceof RedisClient)) {
            throw new IllegalStateException("Lanes require a RedisClient, not " + client.getClass().getName());
        }
        Lanes recipe = Lanes.of((RedisClient) client).by(rule);
        if (lanes > 0) {
            recipe.count(lanes);
        }
        return recipe.connect(codec);
    }

    @Override
    protected StatefulRedisConnection<byte[], byte[]> getSharedConnection() {
        if (!getShareNativeConnection()) {
            return super.getSharedConnection();
        }
        if (getValidateConnection()) {
            validateConnection();
        }
        return lanes();
    }

    @Override
    protected StatefulConnection<ByteBuffer, ByteBuffer> getSharedReactiveConnection() {
        if (!getShareNativeConnection()) {
            return super.getSharedReactiveConnection();
        }
        if (getValidateConnection()) {
            validateConnection();
        }
        return reactiveLanes();
    }

    /** {@inheritDoc} If all lanes are down, or PING fails, they are closed, and opened again when they are needed. */
    @Override
    public void validateConnection() {
        if (!getShareNativeConnection()) {
            super.validateConnection();
            return;
        }
        synchronized (monitor) {
            if (!answers(imperative)) {
                imperative.close();
                imperative = null;
            }
            if (!answers(reactive)) {
                reactive.close();
                reactive = null;
            }
        }
    }

    private static boolean answers(LanesConnection<?, ?> lanes) {
        if (lanes == null) {
            return true;
        }
        try {
            return lanes.isOpen() && "PONG".equals(lanes.sync().ping());
        } catch (RedisException e) {
            return false;
        }
    }

    /** {@inheritDoc} The lanes are closed, and opened again when they are needed. */
    @Override
    public void resetConnection() {
        closeLanes();
        super.resetConnection();
    }

    @Override
    public void stop() {
        closeLanes();
        super.stop();
    }

    private void closeLanes() {
        synchronized (monitor) {
            if (imperative != null) {
                imperative.close();
                imperative = null;
            }
            if (reactive != null) {
                reactive.close();
                reactive = null;
            }
        }
    }
}
