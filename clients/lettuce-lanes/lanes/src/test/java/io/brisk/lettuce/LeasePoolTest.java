package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.testkit.Await;
import io.brisk.lettuce.testkit.FaultProxy;
import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.RedisException;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The pool: its limit, its error when it is exhausted, the state that reaches the next caller, and leaks.
 */
class LeasePoolTest extends ServerCase {

    private static final Duration SOON = Duration.ofSeconds(20);

    private static final Duration NOW = Duration.ofMillis(1);

    private LeasePool<String, String> pool(int port, int max) {
        return ending(LeasePool.of(client(port), StringCodec.UTF8, uri(port), max));
    }

    @Test
    void one_wrapper_serves_all_borrows_of_a_connection() {
        LeasePool<String, String> pool = ending(LeasePool.of(client(redis().port()), 4));
        LeasedConnection<String, String> first = pool.borrow(SOON);
        Object sync = first.sync();
        first.close();
        LeasedConnection<String, String> second = pool.borrow(SOON);
        assertSame(first, second);
        assertSame(sync, second.sync());
        assertSame(second, second.sync().getStatefulConnection());
        assertEquals(1, pool.size());
        second.close();
        second.close();
        assertEquals(0, pool.leased());
    }

    @Test
    void the_error_of_an_exhausted_pool_names_the_holder() {
        LeasePool<String, String> pool = pool(redis().port(), 2);
        pool.borrow(SOON);
        LeasedConnection<String, String> second = pool.borrow(SOON);
        LanesException error = assertThrows(LanesException.class, () -> pool.borrow(NOW));
        assertTrue(error.getMessage().startsWith("All 2 connections are leased and none was returned within 1 ms."),
                error.getMessage());
        assertTrue(error.getMessage().contains("taken by thread " + Thread.currentThread().getName()), error.getMessage());
        second.close();
        pool.borrow(SOON);
        assertEquals(2, pool.leased());
    }

    @Test
    void an_unreachable_server_is_reported_and_no_permit_is_lost() {
        FaultProxy proxy = ending(new FaultProxy(redis().port()));
        proxy.refuse(true);
        LeasePool<String, String> pool = pool(proxy.port(), 1);
        for (int i = 0; i < 3; i++) {
            LanesException error = assertThrows(LanesException.class, () -> pool.borrow(NOW));
            assertTrue(error.getMessage().startsWith("No connection to lease: "), error.getMessage());
        }
        proxy.refuse(false);
        try (LeasedConnection<String, String> lease = pool.borrow(NOW)) {
            assertEquals("PONG", lease.sync().ping());
        }
    }

    @Test
    void a_broken_connection_is_not_leased() {
        FaultProxy proxy = ending(new FaultProxy(redis().port()));
        LeasePool<String, String> pool = pool(proxy.port(), 1);
        LeasedConnection<String, String> first = pool.borrow(SOON);
        first.close();
        proxy.refuse(true);
        proxy.links().get(0).cut();
        Await.until("the connection is lost", () -> !first.isOpen());
        proxy.refuse(false);
        // The connection may have been restored in the meantime; either way the lease works.
        try (LeasedConnection<String, String> second = pool.borrow(SOON)) {
            assertEquals("PONG", second.sync().ping());
            assertEquals(1, pool.size());
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void state_that_a_caller_left_does_not_reach_the_next_caller(Server.Kind kind) {
        LeasePool<String, String> pool = pool(port(kind), 1);
        LeasedConnection<String, String> first = pool.borrow(SOON);
        first.sync().watch("watched");
        first.close();
        assertThrows(RedisException.class, () -> first.sync().get("k"));
        try (LeasedConnection<String, String> own = pool.borrow(SOON)) {
            assertSame(first, own);
            own.sync().set("watched", "changed");
            own.sync().multi();
            own.sync().set("done", "yes");
            // If the WATCH of the previous caller were still active, the transaction would be discarded.
            assertEquals(1, own.sync().exec().size());
            own.async().blpop(0, "never");
        }
        LeasedConnection<String, String> next = pool.borrow(SOON);
        assertNotSame(first, next, "the other one is still blocked");
        assertEquals("yes", next.sync().get("done"));
        next.setTimeout(Duration.ofMillis(7));
        next.close();
        LeasedConnection<String, String> last = pool.borrow(SOON);
        assertNotSame(next, last, "its timeout was changed");
        last.close();
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_connection_blocked_by_an_abandoned_command_is_not_leased_again(Server.Kind kind) {
        LeasePool<String, String> pool = pool(port(kind), 1);
        LeasedConnection<String, String> cancelled = pool.borrow(SOON);
        cancelled.async().blpop(0, "never").cancel(true);
        cancelled.close();
        LeasedConnection<String, String> timedOut = pool.borrow(SOON);
        assertNotSame(cancelled, timedOut);
        assertEquals("PONG", timedOut.sync().ping());
        assertThrows(RedisException.class, () -> timedOut.reactive().blpop(0, "never").timeout(Duration.ofMillis(20))
                .onErrorMap(error -> new RedisException(error)).block());
        timedOut.close();
        try (LeasedConnection<String, String> last = pool.borrow(SOON)) {
            assertNotSame(timedOut, last);
            assertEquals("PONG", last.sync().ping());
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_blocking_command_that_was_answered_leaves_its_connection_usable(Server.Kind kind) {
        LeasePool<String, String> pool = pool(port(kind), 1);
        LeasedConnection<String, String> first = pool.borrow(SOON);
        first.sync().del("answered");
        first.sync().set("text", "abc");
        first.close();
        for (int i = 0; i < 50; i++) {
            try (LeasedConnection<String, String> own = pool.borrow(SOON)) {
                assertSame(first, own);
                own.sync().rpush("answered", "v");
                assertEquals("v", own.sync().blpop(1, "answered").getValue());
                assertThrows(RedisException.class, () -> own.sync().blpop(1, "text"));
                own.sync().rpush("answered", "w");
                assertEquals("w", own.reactive().blpop(1, "answered").block().getValue());
            }
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_transaction_unknown_to_lettuce_does_not_reach_the_next_caller(Server.Kind kind) {
        LeasePool<String, String> pool = pool(port(kind), 1);
        LeasedConnection<String, String> own = pool.borrow(SOON);
        assertEquals("OK", own.sync().dispatch(new OwnKeyword("multi"), new StatusOutput<>(StringCodec.UTF8)));
        own.close();
        LeasedConnection<String, String> next = pool.borrow(SOON);
        assertEquals("PONG", next.sync().ping());
        next.sync().dispatch(new OwnKeyword("watch"), new StatusOutput<>(StringCodec.UTF8),
                new CommandArgs<>(StringCodec.UTF8).addKey("seen"));
        next.close();
        try (LeasedConnection<String, String> last = pool.borrow(SOON)) {
            last.sync().set("seen", "changed");
            last.sync().multi();
            last.sync().set("seen", "again");
            assertEquals(1, last.sync().exec().size());
        }
    }

    /** The server executes a MULTI after its caller has given up, so the connection is in a transaction. */
    @Test
    void a_transaction_whose_multi_was_abandoned_does_not_reach_the_next_caller() {
        LeasePool<String, String> pool = pool(redis().port(), 1);
        // Repeated, because the reply may arrive before the caller gives up, at the same time, or later.
        for (int round = 0; round < 500; round++) {
            LeasedConnection<String, String> own = pool.borrow(SOON);
            own.async().multi().cancel(true);
            own.close();
            try (LeasedConnection<String, String> next = pool.borrow(SOON)) {
                assertEquals("PONG", next.sync().ping(), "round " + round);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void many_threads_share_few_connections_and_none_leaks(Server.Kind kind) throws Exception {
        LeasePool<String, String> pool = pool(port(kind), 5);
        pool.borrow(SOON).sync().del("count");
        pool.close();
        LeasePool<String, String> used = pool(port(kind), 5);
        AtomicInteger most = new AtomicInteger();
        ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
        List<Thread> callers = new ArrayList<>();
        for (int t = 0; t < 20; t++) {
            Thread caller = new Thread(() -> {
                try {
                    for (int i = 0; i < 200; i++) {
                        try (LeasedConnection<String, String> own = used.borrow(SOON)) {
                            most.accumulateAndGet(used.leased(), Math::max);
                            own.sync().incr("count");
                        }
                    }
                } catch (Throwable e) {
                    failures.add(e);
                }
            });
            caller.start();
            callers.add(caller);
        }
        for (Thread caller : callers) {
            caller.join();
        }
        assertTrue(failures.isEmpty(), failures::toString);
        assertTrue(most.get() <= 5);
        assertEquals(0, used.leased());
        assertTrue(used.size() <= 5);
        try (LeasedConnection<String, String> own = used.borrow(SOON)) {
            assertEquals("4000", own.sync().get("count"));
        }
    }

    @Test
    void closing_lets_leases_finish_and_grants_no_more() {
        LeasePool<String, String> pool = pool(redis().port(), 2);
        LeasedConnection<String, String> lent = pool.borrow(SOON);
        pool.close();
        assertThrows(LanesException.class, () -> pool.borrow(SOON));
        assertEquals("PONG", lent.sync().ping());
        lent.close();
        assertEquals(0, pool.size());
    }
}
