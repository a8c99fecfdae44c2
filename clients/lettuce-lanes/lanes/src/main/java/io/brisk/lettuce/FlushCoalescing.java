package io.brisk.lettuce;

import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;

/**
 * Joins the writes of concurrent commands into few system calls, for lanes and for any other Lettuce connection.
 * <p>
 * Lettuce flushes after each command, so 200 threads on one connection cause a system call per command. With this a
 * flush waits until the event loop has taken up what other threads already handed to it, at most {@code limit} commands.
 * A command that is alone is flushed at once; nothing waits for time to pass.
 *
 * <pre>{@code
 * ClientResources resources = FlushCoalescing.resources(64);
 * RedisClient client = RedisClient.create(resources, "redis://localhost");
 * ...
 * client.shutdown();
 * resources.shutdown();   // who makes resources ends them
 * }</pre>
 */
public final class FlushCoalescing {

    /** A limit that is neither too small to help nor so large that replies come in lumps. */
    public static final int LIMIT_DEFAULT = 64;

    private FlushCoalescing() {
    }

    /**
     * Client resources whose connections join their writes.
     *
     * @param limit how many commands at most are joined, at least 1
     * @return resources that the caller shuts down in the end
     */
    public static ClientResources resources(int limit) {
        return ClientResources.builder().nettyCustomizer(customizer(limit)).build();
    }

    /**
     * For resources that are built elsewhere: {@code ClientResources.builder().nettyCustomizer(customizer(64))}.
     *
     * @param limit how many commands at most are joined, at least 1
     * @return puts the joining into each new connection
     */
    public static NettyCustomizer customizer(int limit) {
        return customizer(limit, new NettyCustomizer() {
        });
    }

    /**
     * For resources that have a customizer already.
     *
     * @param limit how many commands at most are joined, at least 1
     * @param other is asked first
     * @return puts the joining into each new connection, behind what the other one does
     */
    public static NettyCustomizer customizer(int limit, NettyCustomizer other) {
        if (limit < 1) {
            throw new IllegalArgumentException("At least 1 command goes with a flush, not " + limit);
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
