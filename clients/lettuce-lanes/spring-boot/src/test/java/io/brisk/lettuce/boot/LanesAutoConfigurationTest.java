package io.brisk.lettuce.boot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.brisk.lettuce.spring.LanesLettuceConnectionFactory;
import io.brisk.lettuce.testkit.Await;
import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.StringRedisTemplate;

/**
 * Spring Boot applications with and without the properties, against a real server.
 */
class LanesAutoConfigurationTest {

    private static Server server;

    @Configuration
    @EnableAutoConfiguration
    static class Application {
    }

    @BeforeAll
    static void start() {
        server = Server.start(Server.Kind.REDIS);
    }

    @AfterAll
    static void end() {
        server.close();
    }

    private static ConfigurableApplicationContext application(String... properties) {
        List<String> arguments = new ArrayList<>(List.of("--spring.data.redis.host=127.0.0.1",
                "--spring.data.redis.port=" + server.port(), "--spring.main.banner-mode=off"));
        arguments.addAll(List.of(properties));
        return SpringApplication.run(Application.class, arguments.toArray(new String[0]));
    }

    private static int sockets(StringRedisTemplate template) {
        return template.execute((RedisCallback<Integer>) c -> c.serverCommands().getClientList().size());
    }

    @Test
    void one_property_gives_lanes() {
        try (ConfigurableApplicationContext context = application("--brisk.lettuce.lanes=3",
                "--spring.data.redis.database=2", "--spring.data.redis.client-name=app")) {
            LanesLettuceConnectionFactory factory = assertInstanceOf(LanesLettuceConnectionFactory.class,
                    context.getBean(RedisConnectionFactory.class));
            StringRedisTemplate template = context.getBean(StringRedisTemplate.class);
            template.opsForValue().set("k", "v");
            assertEquals("v", template.opsForValue().get("k"));
            assertEquals(3, sockets(template));
            assertEquals(2, factory.getDatabase());
            assertEquals("app", factory.lanes().sync().clientGetname() == null ? null
                    : new String(factory.lanes().sync().clientGetname()));
        }
        // The shutdown of the application closes the lanes.
        try (ConfigurableApplicationContext context = application()) {
            StringRedisTemplate template = context.getBean(StringRedisTemplate.class);
            Await.until("all lanes are closed", () -> sockets(template) == 1);
        }
    }

    @Test
    void without_the_property_nothing_changes() {
        try (ConfigurableApplicationContext context = application()) {
            assertSame(LettuceConnectionFactory.class, context.getBean(RedisConnectionFactory.class).getClass());
            assertEquals(0, flushHandlers(context.getBean(ClientResources.class)));
        }
    }

    @Test
    void rule_and_joined_writes_can_be_chosen() {
        try (ConfigurableApplicationContext context = application("--brisk.lettuce.lanes=2", "--brisk.lettuce.by=least-pending",
                "--brisk.lettuce.coalescing=true")) {
            LanesLettuceConnectionFactory factory = context.getBean(LanesLettuceConnectionFactory.class);
            StringRedisTemplate template = context.getBean(StringRedisTemplate.class);
            template.opsForValue().set("k", "v");
            // Without other settings, only the rule LEAST_PENDING counts pending commands.
            assertEquals(0, factory.lanes().lanes().get(0).pending());
            ClientResources resources = context.getBean(ClientResources.class);
            assertInstanceOf(DefaultClientResources.class, resources);
            assertEquals(1, flushHandlers(resources));
            assertSame(resources, factory.getClientConfiguration().getClientResources().orElseThrow());
        }
    }

    private static int flushHandlers(ClientResources resources) {
        EmbeddedChannel channel = new EmbeddedChannel();
        resources.nettyCustomizer().afterChannelInitialized(channel);
        return channel.pipeline().get("brisk-flush-coalescing") == null ? 0 : 1;
    }

    @Test
    void an_invalid_value_fails_the_startup_with_a_reason() {
        Exception error = assertThrows(Exception.class, () -> application("--brisk.lettuce.lanes=-1").close());
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        assertNotSame(error, cause);
        assertEquals("The number of lanes must be from 1 to 1024, not -1", cause.getMessage());
    }
}
