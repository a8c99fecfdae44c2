package io.brisk.lettuce;

import io.lettuce.core.api.push.PushListener;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.PushHandler;
import io.lettuce.core.protocol.RedisCommand;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Operations on all lanes: some commands about the connection, and push listeners.
 */
final class EveryLane<K, V> implements PushHandler {

    private final List<RealLane<K, V>> lanes;

    private final List<PushListener> listeners = new CopyOnWriteArrayList<>();

    private final RedisCodec<K, V> codec;

    EveryLane(List<RealLane<K, V>> lanes, RedisCodec<K, V> codec) {
        this.lanes = lanes;
        this.codec = codec;
    }

    /**
     * Sends a copy of the command on each lane, and completes the command when all replies have arrived: with the reply,
     * or with the first error. All of these commands have a status reply.
     */
    <T> RedisCommand<K, V, T> send(RedisCommand<K, V, T> command) {
        List<CompletableFuture<String>> replies = new ArrayList<>(lanes.size());
        for (RealLane<K, V> lane : lanes) {
            AsyncCommand<K, V, String> copy = new AsyncCommand<>(
                    new Command<>(command.getType(), new StatusOutput<>(codec), command.getArgs()));
            lane.connection().dispatch(copy);
            replies.add(copy.toCompletableFuture());
        }
        CompletableFuture.allOf(replies.toArray(new CompletableFuture<?>[0])).whenComplete((ignored, error) -> {
            if (error != null) {
                command.completeExceptionally(error instanceof CompletionException ? error.getCause() : error);
                return;
            }
            try {
                if (command.getOutput() != null) {
                    command.getOutput().set(ByteBuffer.wrap(replies.get(0).join().getBytes(StandardCharsets.UTF_8)));
                }
                command.complete();
            } catch (RuntimeException e) {
                // The caller's output does not accept a status.
                command.completeExceptionally(e);
            }
        });
        return command;
    }

    @Override
    public void addListener(PushListener listener) {
        listeners.add(listener);
        lanes.forEach(lane -> lane.connection().addListener(listener));
    }

    @Override
    public void removeListener(PushListener listener) {
        listeners.remove(listener);
        lanes.forEach(lane -> lane.connection().removeListener(listener));
    }

    @Override
    public Collection<PushListener> getPushListeners() {
        return listeners;
    }
}
