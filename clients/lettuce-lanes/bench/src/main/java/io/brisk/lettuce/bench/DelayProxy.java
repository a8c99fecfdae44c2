package io.brisk.lettuce.bench;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.util.concurrent.TimeUnit;

/**
 * A proxy that delays every byte by half a round-trip time in each direction, and keeps the bytes in order. Bandwidth
 * is not limited. {@code DelayProxy PORT TARGET RTT_MS}
 */
public final class DelayProxy {

    private DelayProxy() {
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        int target = Integer.parseInt(arguments[1]);
        long delayMicros = Math.round(Double.parseDouble(arguments[2]) * 1000 / 2);
        MultiThreadIoEventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
        ChannelFuture bound = new ServerBootstrap().group(loop).channel(NioServerSocketChannel.class)
                .childOption(ChannelOption.AUTO_READ, false).childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ChannelInitializer<SocketChannel>() {

                    @Override
                    protected void initChannel(SocketChannel client) {
                        connect(client, target, delayMicros);
                    }
                }).bind("127.0.0.1", port).sync();
        System.out.println("delay proxy on port " + port + " to " + target + ", round trip " + arguments[2] + " ms");
        bound.channel().closeFuture().sync();
    }

    private static void connect(SocketChannel client, int target, long delayMicros) {
        ChannelFuture connecting = new Bootstrap().group(client.eventLoop()).channel(NioSocketChannel.class)
                .option(ChannelOption.AUTO_READ, false).option(ChannelOption.TCP_NODELAY, true)
                .handler(new Later(client, delayMicros)).connect("127.0.0.1", target);
        Channel server = connecting.channel();
        client.pipeline().addLast(new Later(server, delayMicros));
        connecting.addListener(done -> {
            if (done.isSuccess()) {
                client.config().setAutoRead(true);
                server.config().setAutoRead(true);
            } else {
                client.close();
            }
        });
    }

    /** Forwards bytes to the other side after the delay. Tasks with equal delays run in the order of their creation. */
    private static final class Later extends ChannelInboundHandlerAdapter {

        private final Channel to;

        private final long delayMicros;

        Later(Channel to, long delayMicros) {
            this.to = to;
            this.delayMicros = delayMicros;
        }

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object bytes) {
            ctx.channel().eventLoop().schedule(() -> to.writeAndFlush(bytes), delayMicros, TimeUnit.MICROSECONDS);
        }

        @Override
        public void channelInactive(ChannelHandlerContext ctx) {
            ctx.channel().eventLoop().schedule(() -> to.close(), delayMicros, TimeUnit.MICROSECONDS);
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
            ctx.close();
        }
    }
}
