package io.brisk.lettuce;

import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.protocol.ConnectionFacade;
import io.lettuce.core.protocol.RedisCommand;
import io.lettuce.core.resource.ClientResources;
import java.util.ArrayList;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Passes each command to the writer of one of the lanes. {@link LanesConnection} has already rejected commands that
 * cannot be shared.
 */
final class LanesChannelWriter<K0, V0> implements RedisChannelWriter {

    private final List<RealLane<K0, V0>> lanes;

    private final Choice<K0, V0> choice;

    LanesChannelWriter(List<RealLane<K0, V0>> lanes, Choice<K0, V0> choice) {
        this.lanes = lanes;
        this.choice = choice;
    }

    @Override
    public <K, V, T> RedisCommand<K, V, T> write(RedisCommand<K, V, T> command) {
        RealLane<K0, V0> lane;
        try {
            lane = choice.laneOf(command);
        } catch (RuntimeException e) {
            // The lane has lost its connection, or the caller's codec failed to encode the key.
            command.completeExceptionally(e);
            return command;
        }
        lane.count(command);
        return lane.writer().write(command);
    }

    @Override
    public <K, V> Collection<RedisCommand<K, V, ?>> write(Collection<? extends RedisCommand<K, V, ?>> commands) {
        Map<RealLane<K0, V0>, List<RedisCommand<K, V, ?>>> parts = new IdentityHashMap<>(lanes.size());
        List<RedisCommand<K, V, ?>> all = new ArrayList<>(commands.size());
        for (RedisCommand<K, V, ?> command : commands) {
            all.add(command);
            try {
                RealLane<K0, V0> lane = choice.laneOf(command);
                lane.count(command);
                parts.computeIfAbsent(lane, l -> new ArrayList<>()).add(command);
            } catch (RuntimeException e) {
                command.completeExceptionally(e);
            }
        }
        parts.forEach((lane, part) -> lane.writer().write(part));
        return all;
    }

    @Override
    public void close() {
        closeAsync().join();
    }

    @Override
    public CompletableFuture<Void> closeAsync() {
        CompletableFuture<?>[] closing = new CompletableFuture<?>[lanes.size()];
        for (int i = 0; i < closing.length; i++) {
            closing[i] = lanes.get(i).connection().closeAsync();
        }
        return CompletableFuture.allOf(closing);
    }

    /**
     * Required by Lettuce before 7.0. No annotation, since later versions do not declare it.
     */
    public void reset() {
        throw new UnsupportedOperationException(
                "reset() is not supported on shared connections (Lettuce 7 has removed it). Close the connection and connect again.");
    }

    /** Each lane notifies its own connection; the facade queries the lanes. */
    @Override
    public void setConnectionFacade(ConnectionFacade connection) {
        // Nothing to store.
    }

    @Override
    public void setAutoFlushCommands(boolean autoFlush) {
        lanes.forEach(lane -> lane.setAutoFlush(autoFlush));
    }

    @Override
    public void flushCommands() {
        lanes.forEach(lane -> lane.connection().flushCommands());
    }

    @Override
    public ClientResources getClientResources() {
        return lanes.get(0).connection().getResources();
    }
}
