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
 * Asks each lane with PING whether it is alive, and drops the socket of one that does not answer.
 */
final class LaneProbe<K, V> {

    private final List<RealLane<K, V>> lanes;

    private final Timer timer;

    private final long intervalMs;

    private final long patienceMs;

    private volatile boolean stopped;

    private volatile Timeout next;

    LaneProbe(List<RealLane<K, V>> lanes, Timer timer, Duration interval, Duration patience) {
        this.lanes = lanes;
        this.timer = timer;
        this.intervalMs = interval.toMillis();
        this.patienceMs = patience.toMillis();
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

    /** One question per lane; the next ones are asked when all had time to answer, so they cannot pile up. */
    private void ask() {
        // Who shuts the client down closes the lanes only.
        if (stopped || lanes.stream().allMatch(RealLane::isClosed)) {
            return;
        }
        RedisFuture<?>[] answers = new RedisFuture<?>[lanes.size()];
        for (RealLane<K, V> lane : lanes) {
            // One that reconnects is known to be down, and the question would only wait with the others.
            if (lane.isConnected() && !lane.isHeldBack()) {
                answers[lane.index()] = lane.connection().async().ping();
            }
        }
        next = timer.newTimeout(t -> judge(answers), patienceMs, TimeUnit.MILLISECONDS);
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
            // An error that the server sent is a sign of life, too.
            lane.unwatch();
            return false;
        }
        if (error instanceof RedisCommandTimeoutException) {
            return true;
        }
        // It was not sent, for the queue of the lane is full. One that lives answers others meanwhile.
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
