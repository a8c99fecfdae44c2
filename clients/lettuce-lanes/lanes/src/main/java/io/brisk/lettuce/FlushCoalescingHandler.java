package io.brisk.lettuce;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.EventLoop;
import io.netty.handler.flush.FlushConsolidationHandler;
import io.netty.util.concurrent.SingleThreadEventExecutor;

/**
 * Netty's own consolidation of flushes, but for a flush behind which nothing waits, which goes out at once.
 * <p>
 * Without that exception a lone command would take one more turn of the event loop.
 */
final class FlushCoalescingHandler extends FlushConsolidationHandler {

    private boolean reading;

    FlushCoalescingHandler(int limit) {
        super(limit, true);
    }

    @Override
    public void flush(ChannelHandlerContext ctx) throws Exception {
        if (!reading && isLast(ctx.channel().eventLoop())) {
            // What was held back before goes out with it; the flush that still comes for it finds nothing to do.
            ctx.flush();
        } else {
            super.flush(ctx);
        }
    }

    /** Whether no other thread has handed anything to the loop that would follow now. */
    private static boolean isLast(EventLoop loop) {
        return loop instanceof SingleThreadEventExecutor && ((SingleThreadEventExecutor) loop).pendingTasks() == 0;
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object msg) throws Exception {
        reading = true;
        super.channelRead(ctx, msg);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) throws Exception {
        reading = false;
        super.channelReadComplete(ctx);
    }
}
