package io.brisk.lettuce;

import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;

/**
 * Joins the writes of concurrent commands into a few system calls, for sharded connections and for any other Lettuce
 * connection.
 * <p>
 * Lettuce flushes after each command, so 200 threads on one connection cause one system call per command. With joined
 * writes, a flush waits until the event loop has processed the commands that other threads have already submitted, at
 * most {@code limit} of them. A single command is flushed immediately. No timer is involved.
 *
 * <pre>{@code
 * ClientResources resources = FlushCoalescing.resources(64);
 * RedisClient client = RedisClient.create(resources, "redis://localhost");
 * ...
 * client.shutdown();
 * resources.shutdown();   // after the client
 * }</pre>
 */
public final class FlushCoalescing {

    /** A limit that is large enough to help, and small enough for replies to arrive steadily. */
    public static final int LIMIT_DEFAULT = 64;

    private FlushCoalescing() {
    }

    /**
     * Creates client resources whose connections join their writes.
     *
     * @param limit maximum number of commands per write, at least 1
     * @return resources; the caller shuts them down after the client
     */
    public static ClientResources resources(int limit) {
        return ClientResources.builder().nettyCustomizer(customizer(limit)).build();
    }

    /**
     * Creates a customizer for resources that are built elsewhere:
     * {@code ClientResources.builder().nettyCustomizer(customizer(64))}.
     *
     * @param limit maximum number of commands per write, at least 1
     * @return a customizer that enables joined writes on each new connection
     */
    public static NettyCustomizer customizer(int limit) {
        return customizer(limit, new NettyCustomizer() {
        });
    }

    /**
     * Creates a customizer for resources that already have another one.
     *
     * @param limit maximum number of commands per write, at least 1
     * @param other the existing customizer, called first
     * @return a customizer that calls {@code other} and then enables joined writes on each new connection
     */
    public static NettyCustomizer customizer(int limit, NettyCustomizer other) {
        if (limit < 1) {
            throw new IllegalArgumentException("limit must be at least 1 command per write, not " + limit);
        }
        return new NettyCustomizer() {

            @Override
            public void afterBootstrapInitialized(Bootstrap bootstrap) {
                other.afterBootstrapInitialized(bootstrap);
            }

            @Override
            public void afterChannelInitialized(Channel channel) {
                other.afterChannelInitialized(channel);
                channel.pipeline().addFirst("brisk-flush-coalescing", new FlushCoalescingHandler(limit));
            }
        };
    }
}
