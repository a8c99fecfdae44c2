package io.brisk.lettuce;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisFuture;
import io.netty.util.Timeout;
import io.netty.util.Timer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/**
 * Sends PING on each lane, and closes the socket of a lane that does not reply.
 */
final class LaneProbe<K, V> {

    private final List<RealLane<K, V>> lanes;

    private final Timer timer;

    private final long intervalMs;

    private final long timeoutMs;

    private volatile boolean stopped;

    private volatile Timeout next;

    LaneProbe(List<RealLane<K, V>> lanes, Timer timer, Duration interval, Duration timeout) {
        this.lanes = lanes;
        this.timer = timer;
        this.intervalMs = interval.toMillis();
        this.timeoutMs = timeout.toMillis();
    }

    void start() {
        if (!stopped) {
            next = timer.newTimeout(t -> ask(), intervalMs, TimeUnit.MILLISECONDS);
        }
    }

    void stop() {
        stopped = true;
        Timeout waiting = next;
        if (waiting != null) {
            waiting.cancel();
        }
    }

    /** Sends one PING per lane. The next round begins after all lanes had time to reply, so PINGs cannot pile up. */
    private void ask() {
        // Shutting the client down closes the lanes, but does not stop the probe.
        if (stopped || lanes.stream().allMatch(RealLane::isClosed)) {
            return;
        }
        RedisFuture<?>[] answers = new RedisFuture<?>[lanes.size()];
        for (RealLane<K, V> lane : lanes) {
            // A lane that reconnects is known to be down; the PING would only be queued.
            if (lane.isConnected() && !lane.isHeldBack()) {
                answers[lane.index()] = lane.connection().async().ping();
            }
        }
        next = timer.newTimeout(t -> judge(answers), timeoutMs, TimeUnit.MILLISECONDS);
    }

    private void judge(RedisFuture<?>[] answers) {
        for (RealLane<K, V> lane : lanes) {
            RedisFuture<?> answer = answers[lane.index()];
            if (answer != null && lane.isConnected() && !lane.isHeldBack() && isDead(lane, answer)) {
                answer.cancel(true);
                lane.dropSocket();
            }
        }
        start();
    }

    private static boolean isDead(RealLane<?, ?> lane, RedisFuture<?> answer) {
        if (!answer.isDone()) {
            return true;
        }
        Throwable error = errorOf(answer);
        if (error == null || error instanceof RedisCommandExecutionException) {
            // An error reply also shows that the server is alive.
            lane.unwatch();
            return false;
        }
        if (error instanceof RedisCommandTimeoutException) {
            return true;
        }
        // The PING was not sent, because the lane's queue is full. A live server still replies to other commands.
        boolean dead = lane.isWatched() && !lane.isLifeSeen();
        if (dead) {
            lane.unwatch();
        } else {
            lane.watch();
        }
        return dead;
    }

    private static Throwable errorOf(RedisFuture<?> answer) {
        return answer.toCompletableFuture().<Throwable> handle((ignored, error) -> error instanceof CompletionException
                ? error.getCause() : error).join();
    }
}
