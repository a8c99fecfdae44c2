package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.resource.NettyCustomizer;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Joined flushes on a channel without a socket. This channel runs pending tasks at each write, so most tests only flush.
 */
class FlushCoalescingTest {

    /** Takes the place of the socket and counts the flushes, each of which would be a system call. */
    private static final class Flushes extends ChannelOutboundHandlerAdapter {

        private int count;

        @Override
        public void flush(ChannelHandlerContext ctx) {
            count++;
            ctx.flush();
        }
    }

    private final Flushes flushes = new Flushes();

    private EmbeddedChannel channel(int limit) {
        EmbeddedChannel channel = new EmbeddedChannel();
        FlushCoalescing.customizer(limit).afterChannelInitialized(channel);
        assertSame(FlushCoalescingHandler.class, channel.pipeline().first().getClass());
        // The first handler of a pipeline is the last one for outbound events.
        channel.pipeline().addFirst(flushes);
        return channel;
    }

    @Test
    void flushes_of_one_turn_of_the_loop_are_one() {
        EmbeddedChannel channel = channel(64);
        for (int i = 0; i < 10; i++) {
            channel.pipeline().flush();
        }
        assertEquals(0, flushes.count);
        channel.runPendingTasks();
        assertEquals(1, flushes.count);
    }

    @Test
    void no_more_than_the_limit_is_held_back() {
        EmbeddedChannel channel = channel(4);
        for (int i = 0; i < 9; i++) {
            channel.pipeline().flush();
        }
        assertEquals(2, flushes.count);
        channel.runPendingTasks();
        assertEquals(3, flushes.count);
    }

    @Test
    void commands_submitted_while_replies_are_read_are_flushed_after_the_last_reply() {
        EmbeddedChannel channel = channel(64);
        channel.pipeline().fireChannelRead("reply");
        for (int i = 0; i < 5; i++) {
            channel.pipeline().flush();
        }
        assertEquals(0, flushes.count);
        channel.pipeline().fireChannelReadComplete();
        assertEquals(1, flushes.count);
    }

    @Test
    void held_back_commands_are_flushed_before_the_channel_closes() {
        EmbeddedChannel channel = channel(64);
        channel.write(Unpooled.wrappedBuffer(new byte[] { 1 }));
        channel.pipeline().flush();
        channel.close();
        assertEquals(1, channel.outboundMessages().size());
        assertTrue(flushes.count >= 1);
    }

    @Test
    void another_customizer_is_called_too() {
        List<Object> seen = new ArrayList<>();
        NettyCustomizer other = new NettyCustomizer() {

            @Override
            public void afterChannelInitialized(Channel channel) {
                seen.add(channel);
            }
        };
        EmbeddedChannel channel = new EmbeddedChannel();
        FlushCoalescing.customizer(64, other).afterChannelInitialized(channel);
        assertEquals(List.of(channel), seen);
    }
}
