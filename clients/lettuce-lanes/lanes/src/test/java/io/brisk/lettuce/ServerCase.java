package io.brisk.lettuce;

import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.resource.ClientResources;
import java.time.Duration;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.junit.jupiter.api.AfterEach;

/**
 * Base class of tests against real servers: one server of each kind per JVM, and clients that are shut down after each
 * test.
 */
abstract class ServerCase {

    private static final Map<Server.Kind, Server> RUNNING = new EnumMap<>(Server.Kind.class);

    private final Deque<Runnable> endings = new ConcurrentLinkedDeque<>();

    /** The servers under test; a method source of parameterized tests. */
    static List<Server.Kind> kinds() {
        return Server.Kind.available();
    }

    static synchronized int port(Server.Kind kind) {
        return RUNNING.computeIfAbsent(kind, Server::start).port();
    }

    /** The reference server, for tests that do not depend on the server. */
    static synchronized Server redis() {
        return RUNNING.computeIfAbsent(Server.Kind.REDIS, Server::start);
    }

    RedisClient client(int port) {
        RedisClient client = RedisClient.create(uri(port));
        endings.push(client::shutdown);
        return client;
    }

    RedisClient coalescingClient(int port) {
        ClientResources resources = FlushCoalescing.resources(FlushCoalescing.LIMIT_DEFAULT);
        endings.push(() -> resources.shutdown().syncUninterruptibly());
        RedisClient client = RedisClient.create(resources, uri(port));
        endings.push(client::shutdown);
        return client;
    }

    static RedisURI uri(int port) {
        return RedisURI.builder().withHost("127.0.0.1").withPort(port).withTimeout(Duration.ofSeconds(20)).build();
    }

    /** Registers a resource to be closed after the test, in reverse order of registration. */
    <T extends AutoCloseable> T ending(T resource) {
        endings.push(() -> {
            try {
                resource.close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        return resource;
    }

    @AfterEach
    void end() {
        while (!endings.isEmpty()) {
            endings.pop().run();
        }
    }
}
