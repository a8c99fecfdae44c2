package io.brisk.lettuce.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.LaneHealth;
import io.brisk.lettuce.testkit.Await;
import io.brisk.lettuce.testkit.FaultProxy;
import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.ReadFrom;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.api.Test;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.RedisStaticMasterReplicaConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;

/**
 * Spring's templates with lanes, against real servers.
 */
class LanesLettuceConnectionFactoryTest {

    static List<Server.Kind> kinds() {
        return Server.Kind.available();
    }

    private static LanesLettuceConnectionFactory factory(Server server, int lanes) {
        LanesLettuceConnectionFactory factory = new LanesLettuceConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", server.port()), LettuceClientConfiguration.defaultConfiguration());
        factory.setLanes(lanes);
        factory.afterPropertiesSet();
        factory.start();
        return factory;
    }

    private static long sockets(StringRedisTemplate template) {
        return template.execute((org.springframework.data.redis.core.RedisCallback<Integer>) c -> c.serverCommands()
                .getClientList().size());
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void templates_share_the_lanes(Server.Kind kind) {
        try (Server server = Server.start(kind)) {
            LanesLettuceConnectionFactory factory = factory(server, 3);
            StringRedisTemplate template = new StringRedisTemplate(factory);
            template.opsForValue().set("k", "v");
            assertEquals("v", template.opsForValue().get("k"));
            assertEquals(3L, template.opsForList().rightPushAll("l", "a", "b", "c"));
            assertEquals(List.of("a", "b", "c"), template.opsForList().range("l", 0, -1));
            assertEquals(3, sockets(template));
            assertEquals(3, factory.lanes().lanes().size());

            ReactiveStringRedisTemplate reactive = new ReactiveStringRedisTemplate(factory);
            assertEquals("v", reactive.opsForValue().get("k").block(Duration.ofSeconds(20)));
            assertEquals(List.of("a", "b", "c"), reactive.opsForList().range("l", 0, -1).collectList().block());
            assertEquals(6, sockets(template));
            factory.destroy();
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void commands_that_need_their_own_connection_get_one(Server.Kind kind) {
        try (Server server = Server.start(kind)) {
            LanesLettuceConnectionFactory factory = factory(server, 2);
            StringRedisTemplate template = new StringRedisTemplate(factory);
            List<Object> results = template.execute(new SessionCallback<List<Object>>() {

                @Override
                @SuppressWarnings("unchecked")
                public <K, V> List<Object> execute(RedisOperations<K, V> operations) {
                    RedisOperations<String, String> strings = (RedisOperations<String, String>) operations;
                    strings.multi();
                    strings.opsForValue().set("t", "1");
                    strings.opsForValue().increment("t");
                    return strings.exec();
                }
            });
            assertEquals(List.of(true, 2L), results);
            assertNull(template.opsForList().leftPop("nothing", Duration.ofSeconds(1)));
            List<Object> piped = template.executePipelined((org.springframework.data.redis.core.RedisCallback<Object>) c -> {
                for (int i = 0; i < 100; i++) {
                    c.stringCommands().incr("p".getBytes());
                }
                return null;
            });
            assertEquals(100L, piped.get(99));
            factory.destroy();
        }
    }

    @Test
    void reset_and_stop_close_the_lanes() {
        try (Server server = Server.start(Server.Kind.REDIS)) {
            LanesLettuceConnectionFactory factory = factory(server, 3);
            StringRedisTemplate template = new StringRedisTemplate(factory);
            template.opsForValue().set("k", "v");
            factory.resetConnection();
            assertEquals("v", template.opsForValue().get("k"));
            Await.until("only the new lanes are left", () -> sockets(template) == 3);

            LanesLettuceConnectionFactory observer = factory(server, 1);
            StringRedisTemplate look = new StringRedisTemplate(observer);
            factory.destroy();
            Await.until("only the observer is left", () -> sockets(look) == 1);
            observer.destroy();
        }
    }

    @Test
    void configurations_with_several_connections_are_rejected_at_startup() {
        LanesLettuceConnectionFactory cluster = new LanesLettuceConnectionFactory(
                new RedisClusterConfiguration(List.of("127.0.0.1:1")), LettuceClientConfiguration.defaultConfiguration());
        assertTrue(assertThrows(IllegalStateException.class, cluster::afterPropertiesSet).getMessage().contains("cluster"));
        LanesLettuceConnectionFactory replicas = new LanesLettuceConnectionFactory(new RedisStandaloneConfiguration(),
                LettuceClientConfiguration.builder().readFrom(ReadFrom.REPLICA).build());
        assertTrue(assertThrows(IllegalStateException.class, replicas::afterPropertiesSet).getMessage().contains("ReadFrom"));
        assertThrows(IllegalArgumentException.class, () -> replicas.setLanes(0));
    }

    /** Otherwise the factory would silently connect to localhost instead. */
    @Test
    void a_factory_whose_server_cannot_be_read_is_not_taken_over() {
        LettuceConnectionFactory masterReplica = new LettuceConnectionFactory(
                new RedisStaticMasterReplicaConfiguration("10.0.0.1", 7000));
        String message = assertThrows(IllegalStateException.class, () -> LanesLettuceConnectionFactory.like(masterReplica))
                .getMessage();
        assertTrue(message.contains("RedisStaticMasterReplicaConfiguration"), message);
        RedisStandaloneConfiguration second = new RedisStandaloneConfiguration("10.0.0.1", 7000);
        second.setDatabase(1);
        assertThrows(IllegalStateException.class,
                () -> LanesLettuceConnectionFactory.like(new LettuceConnectionFactory((RedisConfiguration) second)));

        LanesLettuceConnectionFactory own = new LanesLettuceConnectionFactory(
                new RedisStaticMasterReplicaConfiguration("10.0.0.1", 7000), LettuceClientConfiguration.defaultConfiguration());
        assertTrue(assertThrows(IllegalStateException.class, own::afterPropertiesSet).getMessage().contains("master"));
    }

    @Test
    void a_factory_is_taken_over_with_its_settings() {
        RedisStandaloneConfiguration configuration = new RedisStandaloneConfiguration("10.0.0.1", 7000);
        configuration.setDatabase(3);
        configuration.setPassword("secret");
        LettuceConnectionFactory plain = new LettuceConnectionFactory(configuration);
        plain.setEarlyStartup(false);
        plain.setValidateConnection(true);
        LanesLettuceConnectionFactory factory = LanesLettuceConnectionFactory.like(plain);
        assertEquals("10.0.0.1", factory.getHostName());
        assertEquals(7000, factory.getPort());
        assertEquals(3, factory.getDatabase());
        assertEquals("secret", factory.getPassword());
        assertFalse(factory.isEarlyStartup());
        assertTrue(factory.getValidateConnection());
        assertEquals(3, configuration.getDatabase());
        RedisSentinelConfiguration sentinel = new RedisSentinelConfiguration("mymaster", Set.of("10.0.0.2:26379"));
        assertSame(sentinel, LanesLettuceConnectionFactory.like(new LettuceConnectionFactory(sentinel))
                .getSentinelConfiguration());
    }

    /** Spring's own shared connection must not be opened in addition to the lanes. */
    @Test
    void validation_looks_at_the_lanes_and_replaces_them() {
        try (Server server = Server.start(Server.Kind.REDIS); FaultProxy proxy = new FaultProxy(server.port())) {
            LanesLettuceConnectionFactory factory = new LanesLettuceConnectionFactory(
                    new RedisStandaloneConfiguration("127.0.0.1", proxy.port()), LettuceClientConfiguration.builder()
                            .clientOptions(ClientOptions.builder().autoReconnect(false).build()).build());
            factory.setLanes(2);
            factory.setValidateConnection(true);
            factory.afterPropertiesSet();
            factory.start();
            StringRedisTemplate template = new StringRedisTemplate(factory);
            template.opsForValue().set("k", "v");
            factory.validateConnection();
            assertEquals(2, sockets(template));
            proxy.links().forEach(FaultProxy.Link::cut);
            Await.until("the lanes are lost", () -> factory.lanes().lanes().stream().noneMatch(LaneHealth::isConnected));
            assertEquals("v", template.opsForValue().get("k"));
            assertEquals(2, sockets(template));
            factory.destroy();
        }
    }
}
