package io.brisk.lettuce;

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
        if (stopped) {
            return;
        }
        RedisFuture<?>[] answers = new RedisFuture<?>[lanes.size()];
        for (RealLane<K, V> lane : lanes) {
            // One that reconnects is known to be down, and the question would only wait with the others.
            if (lane.isConnected()) {
                answers[lane.index()] = lane.connection().async().ping();
            }
        }
        next = timer.newTimeout(t -> judge(answers), patienceMs, TimeUnit.MILLISECONDS);
    }

    private void judge(RedisFuture<?>[] answers) {
        for (RealLane<K, V> lane : lanes) {
            RedisFuture<?> answer = answers[lane.index()];
            // An error that the server sent is a sign of life; Lettuce's own timeout of the command is none.
            if (answer != null && (!answer.isDone() || isTimeout(answer)) && lane.isConnected()) {
                answer.cancel(true);
                lane.dropSocket();
            }
        }
        start();
    }

    private static boolean isTimeout(RedisFuture<?> answer) {
        return answer.toCompletableFuture().handle((ignored, error) -> {
            Throwable cause = error instanceof CompletionException ? error.getCause() : error;
            return cause instanceof RedisCommandTimeoutException;
        }).join();
    }
}
