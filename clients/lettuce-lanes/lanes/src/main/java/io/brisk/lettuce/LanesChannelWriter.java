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
 * Gives each command to the writer of one of the lanes. What is to be refused was refused before, by
 * {@link LanesConnection}.
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
            // Its lane is lost, or a codec of the user's does not encode its key.
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
     * Lettuce before 7.0 asks for it; no annotation, since later ones do not have it.
     */
    public void reset() {
        throw new UnsupportedOperationException(
                "reset() is not offered over lanes, as Lettuce 7 does not offer it at all. Close and connect again.");
    }

    /** Each lane tells its own connection; the facade asks the lanes. */
    @Override
    public void setConnectionFacade(ConnectionFacade connection) {
        // Nothing to keep.
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
