package io.brisk.lettuce;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.DemandAware;
import io.lettuce.core.protocol.RedisCommand;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * Reports the completion of a command before its caller sees it, and whether the server has replied. <p> A command that
 * was canceled or timed out has ended for its caller, but not for the server: it may still block the connection, or
 * begin a transaction.
 */
final class SeenCommand<K, V, T> extends CommandWrapper<K, V, T> implements DemandAware.Sink {

    private final Consumer<Boolean> whenOver;

    private final AtomicBoolean over = new AtomicBoolean();

    /**
     * Wraps a command before it is sent.
     *
     * @param whenOver called once, with whether the server has replied
     */
    SeenCommand(RedisCommand<K, V, T> command, Consumer<Boolean> whenOver) {
        super(command);
        this.whenOver = whenOver;
        if (command instanceof CompleteableCommand) {
            // The caller may cancel the original command directly.
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

    /** Returns whether the command has completed. */
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
