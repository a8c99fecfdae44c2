package io.brisk.lettuce;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.EventLoop;
import io.netty.handler.flush.FlushConsolidationHandler;
import io.netty.util.concurrent.SingleThreadEventExecutor;

/**
 * Netty's flush consolidation, with one exception: if no tasks are pending after a flush, the flush is executed
 * immediately.
 * <p>
 * Without that exception, a single command would be delayed by one iteration of the event loop.
 */
final class FlushCoalescingHandler extends FlushConsolidationHandler {

    private boolean reading;

    FlushCoalescingHandler(int limit) {
        super(limit, true);
    }

    @Override
    public void flush(ChannelHandlerContext ctx) throws Exception {
        if (!reading && isLast(ctx.channel().eventLoop())) {
            // Earlier writes are sent with this flush; the consolidated flush that follows has nothing to do.
            ctx.flush();
        } else {
            super.flush(ctx);
        }
    }

    /** Returns whether the event loop has no pending tasks of other threads. */
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
