package io.brisk.lettuce;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.DemandAware;
import io.lettuce.core.protocol.RedisCommand;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * A command whose end is seen before its caller sees it, and by which one knows whether the server has answered.
 * <p>
 * A command that its caller gave up, by cancelling or by a timeout, is over for the caller and not for the server: it
 * may still block the connection, or begin a transaction there.
 */
final class SeenCommand<K, V, T> extends CommandWrapper<K, V, T> implements DemandAware.Sink {

    private final Consumer<Boolean> whenOver;

    private final AtomicBoolean over = new AtomicBoolean();

    /**
     * Wraps a command before it is sent.
     *
     * @param whenOver is told once, whether the server answered
     */
    SeenCommand(RedisCommand<K, V, T> command, Consumer<Boolean> whenOver) {
        super(command);
        this.whenOver = whenOver;
        if (command instanceof CompleteableCommand) {
            // Its caller may cancel it without our being asked.
            ((CompleteableCommand<?>) command).onComplete((ignored, error) -> over(isAnswer(error)));
        }
    }

    private static boolean isAnswer(Throwable error) {
        return error == null || error instanceof RedisCommandExecutionException;
    }

    private void over(boolean answered) {
        if (over.compareAndSet(false, true)) {
            whenOver.accept(answered);
        }
    }

    /** Whether it is known how it ended. */
    boolean isOver() {
        return over.get();
    }

    @Override
    public void complete() {
        over(true);
        super.complete();
    }

    @Override
    public boolean completeExceptionally(Throwable error) {
        over(isAnswer(error));
        return super.completeExceptionally(error);
    }

    @Override
    public void cancel() {
        over(false);
        super.cancel();
    }

    @Override
    public boolean hasDemand() {
        return !(command instanceof DemandAware.Sink) || ((DemandAware.Sink) command).hasDemand();
    }

    @Override
    public void setSource(DemandAware.Source source) {
        if (command instanceof DemandAware.Sink) {
            ((DemandAware.Sink) command).setSource(source);
        }
    }

    @Override
    public void removeSource() {
        if (command instanceof DemandAware.Sink) {
            ((DemandAware.Sink) command).removeSource();
        }
    }
}
