package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.testkit.Await;
import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.AclSetuserArgs;
import io.lettuce.core.Consumer;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import reactor.core.Disposable;

/**
 * Commands that cannot be sent on shared lanes are rejected immediately with a helpful message, sent on all lanes, or
 * leased.
 */
class GuardTest extends ServerCase {

    /** Each rejected command, with words that its message must contain. */
    private static Map<String, java.util.function.Consumer<RedisCommands<String, String>>> refused() {
        Map<String, java.util.function.Consumer<RedisCommands<String, String>>> refused = new LinkedHashMap<>();
        refused.put("MULTI lease()", RedisCommands::multi);
        refused.put("EXEC lease()", RedisCommands::exec);
        refused.put("DISCARD lease()", RedisCommands::discard);
        refused.put("WATCH lease()", c -> c.watch("k"));
        refused.put("UNWATCH lease()", RedisCommands::unwatch);
        refused.put("SELECT RedisURI", c -> c.select(1));
        refused.put("BLPOP autoLease(true)", c -> c.blpop(1, "k"));
        refused.put("BRPOP autoLease(true)", c -> c.brpop(1, "k"));
        refused.put("BRPOPLPUSH autoLease(true)", c -> c.brpoplpush(1, "k", "l"));
        refused.put("BZPOPMIN autoLease(true)", c -> c.bzpopmin(1, "k"));
        refused.put("XREAD BLOCK autoLease(true)",
                c -> c.xread(XReadArgs.Builder.block(1), XReadArgs.StreamOffset.latest("k")));
        refused.put("WAIT lease()", c -> c.waitForReplication(0, 1));
        refused.put("QUIT Close", RedisCommands::quit);
        refused.put("CLIENT TRACKING lease()", c -> c.clientTracking(TrackingArgs.Builder.enabled()));
        refused.put("SUBSCRIBE connectPubSub()", c -> c.dispatch(CommandType.SUBSCRIBE,
                new StatusOutput<>(StringCodec.UTF8), new CommandArgs<>(StringCodec.UTF8).add("channel")));
        refused.put("MONITOR lease()", c -> c.dispatch(CommandType.MONITOR, new StatusOutput<>(StringCodec.UTF8)));
        return refused;
    }

    private static CommandArgs<String, String> args() {
        return new CommandArgs<>(StringCodec.UTF8);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    @Test
    void arguments_are_recognized_in_every_encoding() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        Map<String, CommandArgs<String, String>> refused = new LinkedHashMap<>();
        refused.put("CLIENT as a string", args().add("reply").add("off"));
        refused.put("CLIENT as a key", args().addKey("Reply").addKey("OFF"));
        refused.put("CLIENT as a value", args().addValue("TRACKING").addValue("ON"));
        refused.put("CLIENT as bytes", args().add(bytes("tracking")).add(bytes("on")));
        refused.put("SCRIPT to debug", args().add("DEBUG").add("YES"));
        refused.put("HIMPORT that prepares", args().add("PREPARE").addKey("fields").add("a"));
        refused.put("HIMPORT that discards", args().add("DISCARD").addKey("fields"));
        refused.put("XREAD as bytes", args().add(bytes("block")).add(1).add("STREAMS").addKey("s").add("$"));
        refused.put("XREAD with a count", args().add("COUNT").add(1).add("BLOCK").add(1).add("STREAMS").addKey("s").add("$"));
        refused.put("XREADGROUP of a group", args().add("GROUP").add("STREAMS").add("me").add("BLOCK").add(1).add("STREAMS")
                .addKey("s").add(">"));
        refused.forEach((words, args) -> {
            OwnKeyword type = new OwnKeyword(words.substring(0, words.indexOf(' ')));
            RedisException error = assertThrows(RedisException.class,
                    () -> lanes.sync().dispatch(type, new StatusOutput<>(StringCodec.UTF8), args), words);
            assertInstanceOf(LanesException.class, first(error), words);
        });
    }

    /** The group and the consumer may have the names of options. */
    @Test
    void names_of_groups_are_not_taken_for_options() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        lanes.sync().del("groups");
        lanes.sync().xadd("groups", Map.of("f", "v"));
        lanes.sync().xgroupCreate(XReadArgs.StreamOffset.from("groups", "0"), "BLOCK");
        assertEquals(1, lanes.sync().xreadgroup(Consumer.from("BLOCK", "BLOCK"),
                XReadArgs.StreamOffset.lastConsumed("groups")).size());
    }

    /** A batch with a transaction must not be sent: the commands between MULTI and EXEC would be executed anyway. */
    @Test
    void a_batch_with_a_transaction_is_refused_as_a_whole() throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        lanes.sync().set("batch", "before");
        List<AsyncCommand<String, String, String>> batch = new ArrayList<>();
        batch.add(status(CommandType.MULTI, null));
        batch.add(status(CommandType.SET, args().addKey("batch").addValue("within")));
        batch.add(status(CommandType.EXEC, null));
        lanes.dispatch(batch);
        for (AsyncCommand<String, String, String> one : batch) {
            Exception error = assertThrows(Exception.class, () -> one.get(20, TimeUnit.SECONDS));
            assertInstanceOf(LanesException.class, error.getCause());
        }
        assertEquals("before", lanes.sync().get("batch"));
    }

    /** A command that is sent on every lane does not overtake earlier commands of its batch. */
    @Test
    void a_batch_keeps_its_order() throws Exception {
        Server own = ending(Server.start(Server.Kind.REDIS));
        client(own.port()).connect().sync().aclSetuser("nobody", AclSetuserArgs.Builder.on().nopass());
        LanesConnection<String, String> lanes = Lanes.of(client(own.port())).count(1).connect();
        List<AsyncCommand<String, String, String>> batch = new ArrayList<>();
        batch.add(status(CommandType.SET, args().addKey("k").addValue("v")));
        batch.add(status(CommandType.AUTH, args().add("nobody").add("any")));
        batch.add(status(CommandType.SET, args().addKey("k").addValue("w")));
        lanes.dispatch(batch);
        assertEquals("OK", batch.get(0).get(20, TimeUnit.SECONDS));
        assertEquals("OK", batch.get(1).get(20, TimeUnit.SECONDS));
        Exception error = assertThrows(Exception.class, () -> batch.get(2).get(20, TimeUnit.SECONDS));
        assertTrue(error.getMessage().contains("NOPERM"), error.getMessage());
    }

    private static AsyncCommand<String, String, String> status(CommandType type, CommandArgs<String, String> args) {
        return new AsyncCommand<>(new Command<>(type, new StatusOutput<>(StringCodec.UTF8), args));
    }

    /** The command completes with any output. */
    @Test
    void a_command_to_every_lane_completes_with_any_output() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        AsyncCommand<String, String, String> without = new AsyncCommand<>(
                new Command<>(CommandType.CLIENT, null, args().add("SETNAME").add("me")));
        lanes.dispatch(without);
        assertNull(without.toCompletableFuture().orTimeout(20, TimeUnit.SECONDS).join());
        AsyncCommand<String, String, Long> number = new AsyncCommand<>(new Command<>(CommandType.CLIENT,
                new IntegerOutput<>(StringCodec.UTF8), args().add("SETNAME").add("me")));
        lanes.dispatch(number);
        Exception error = assertThrows(Exception.class,
                () -> number.toCompletableFuture().orTimeout(20, TimeUnit.SECONDS).join());
        assertFalse(error.getCause() instanceof TimeoutException, error::toString);
    }

    /** Lettuce's sync API wraps the errors of some commands and throws others unchanged. */
    private static Throwable first(Throwable error) {
        return error.getCause() == null ? error : error.getCause();
    }

    @Test
    void commands_that_need_their_own_connection_are_rejected_with_an_alternative() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        refused().forEach((words, command) -> {
            RedisException error = assertThrows(RedisException.class, () -> command.accept(lanes.sync()), words);
            LanesException refusal = assertInstanceOf(LanesException.class, first(error), words);
            for (String word : words.split(" ")) {
                assertTrue(refusal.getMessage().contains(word), words + ": " + refusal.getMessage());
            }
        });
        // None of the commands reached a lane.
        assertEquals("OK", lanes.sync().set("k", "v"));
        assertEquals("v", lanes.sync().get("k"));
    }

    @Test
    void futures_publishers_and_custom_keywords_are_rejected_too() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        RedisFuture<String> future = lanes.async().multi();
        assertInstanceOf(LanesException.class, assertThrows(Exception.class, () -> future.get(5, TimeUnit.SECONDS)).getCause());
        assertThrows(LanesException.class, () -> lanes.reactive().watch("k").block());
        assertThrows(RedisException.class, () -> lanes.sync().dispatch(new OwnKeyword("blpop"), new StatusOutput<>(StringCodec.UTF8),
                new CommandArgs<>(StringCodec.UTF8).addKey("k").add(0)));
    }

    @Test
    void keys_named_like_options_are_not_taken_for_options() {
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port())).count(2).connect();
        assertEquals(List.of(), lanes.sync().xread(XReadArgs.StreamOffset.from("BLOCK", "0")));
    }

    @Test
    void a_name_and_a_password_reach_every_lane() {
        Server own = ending(Server.start(Server.Kind.REDIS));
        LanesConnection<String, String> lanes = Lanes.of(client(own.port())).count(3).connect();
        lanes.sync().clientSetname("everywhere");
        String clients = lanes.sync().clientList();
        assertEquals(3, clients.split("name=everywhere ", -1).length - 1, clients);

        RedisClient admin = client(own.port());
        StatefulRedisConnection<String, String> adminConnection = admin.connect();
        adminConnection.sync().aclSetuser("writer", AclSetuserArgs.Builder.on().addPassword("secret")
                .allCommands().allKeys());
        assertEquals("OK", lanes.sync().auth("writer", "secret"));
        clients = lanes.sync().clientList();
        assertEquals(3, clients.split("user=writer ", -1).length - 1, clients);
        assertThrows(RedisException.class, () -> lanes.sync().auth("writer", "wrong"));
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void blocking_commands_are_leased_on_request_and_delay_no_other_caller(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(1).autoLease(true).leases(2).connect();
        lanes.sync().del("queue", "queue2", "out");
        RedisFuture<KeyValue<String, String>> waiting = lanes.async().blpop(0, "queue");
        // The only lane is free.
        assertEquals("OK", lanes.sync().set("k", "v"));
        lanes.sync().rpush("queue", "job");
        assertEquals(KeyValue.just("queue", "job"), waiting.get(20, TimeUnit.SECONDS));

        // The limit is enforced, and the error says so.
        RedisFuture<KeyValue<String, String>> first = lanes.async().blpop(0, "queue");
        RedisFuture<KeyValue<String, String>> second = lanes.async().blpop(0, "queue2");
        Exception error = assertThrows(Exception.class, () -> lanes.async().blpop(0, "out").get(20, TimeUnit.SECONDS));
        assertTrue(error.getCause().getMessage().startsWith("All 2 connections are leased"), error.getCause()::getMessage);

        // The connection of a canceled command is not leased again while the server still blocks it.
        first.cancel(true);
        lanes.sync().rpush("queue2", "b");
        assertEquals("b", second.get(20, TimeUnit.SECONDS).getValue());
        RedisFuture<KeyValue<String, String>> third = lanes.async().blpop(0, "out");
        lanes.sync().rpush("out", "c");
        assertEquals("c", third.get(20, TimeUnit.SECONDS).getValue());
    }

    /** With a single lease, each command needs the lease of the previous one. */
    @ParameterizedTest
    @MethodSource("kinds")
    void a_lease_is_returned_before_its_caller_gets_the_reply(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(1).autoLease(true).leases(1).connect();
        lanes.sync().del("chain");
        for (int i = 0; i < 60; i++) {
            lanes.sync().rpush("chain", "v");
        }
        for (int i = 0; i < 20; i++) {
            assertEquals("v", lanes.sync().blpop(1, "chain").getValue());
        }
        List<String> popped = lanes.reactive().blpop(1, "chain").map(KeyValue::getValue).repeat(19).collectList().block();
        assertEquals(20, popped.size());
        CompletionStage<KeyValue<String, String>> chain = lanes.async().blpop(1, "chain");
        for (int i = 0; i < 19; i++) {
            chain = chain.thenCompose(ignored -> lanes.async().blpop(1, "chain"));
        }
        assertEquals("v", chain.toCompletableFuture().get(20, TimeUnit.SECONDS).getValue());
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_publisher_that_is_cancelled_frees_its_lease(Server.Kind kind) {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(1).autoLease(true).leases(1).connect();
        lanes.sync().del("cancelled");
        Disposable waiting = lanes.reactive().blpop(0, "cancelled").subscribe();
        Await.until("it blocks", () -> lanes.sync().info("clients").contains("blocked_clients:1"));
        waiting.dispose();
        Await.until("none is left blocked", () -> lanes.sync().info("clients").contains("blocked_clients:0"));
        lanes.sync().rpush("cancelled", "v");
        // The server may notice the closed connection before the pool has replaced it.
        Await.until("the lease is free", () -> {
            try {
                return "v".equals(lanes.sync().blpop(1, "cancelled").getValue());
            } catch (LanesException exhausted) {
                return false;
            }
        });
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void a_lease_can_do_what_lanes_cannot(Server.Kind kind) {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(2).leases(1).connect();
        lanes.sync().set("balance", "10");
        try (LeasedConnection<String, String> own = lanes.lease()) {
            own.sync().watch("balance");
            own.sync().multi();
            own.sync().decr("balance");
            own.sync().get("balance");
            TransactionResult result = own.sync().exec();
            assertEquals(9L, (Long) result.get(0));
            assertEquals("9", result.get(1));
        }
        // An open transaction or a selected database does not leak into the next lease.
        try (LeasedConnection<String, String> own = lanes.lease()) {
            own.sync().multi();
            own.sync().set("balance", "0");
        }
        try (LeasedConnection<String, String> own = lanes.lease()) {
            own.sync().select(3);
            assertNull(own.sync().get("balance"));
        }
        try (LeasedConnection<String, String> own = lanes.lease()) {
            assertEquals("9", own.sync().get("balance"));
        }
    }

    @Test
    void the_address_gives_the_database_of_all_lanes() {
        RedisURI uri = uri(redis().port());
        uri.setDatabase(5);
        LanesConnection<String, String> lanes = Lanes.of(client(redis().port()), uri).count(3).connect();
        lanes.sync().flushdb();
        for (int i = 0; i < 20; i++) {
            lanes.sync().set("k" + i, "v");
        }
        assertEquals(20, lanes.sync().dbsize());
        Await.until("all lanes are in the database",
                () -> lanes.sync().clientList().split(" db=5 ", -1).length - 1 >= 3);
    }

    @Test
    void invalid_arguments_are_rejected_immediately() {
        Lanes lanes = Lanes.of(client(redis().port()));
        assertThrows(IllegalArgumentException.class, () -> lanes.count(0));
        assertThrows(IllegalArgumentException.class, () -> lanes.count(Lanes.COUNT_MAX + 1));
        assertThrows(IllegalArgumentException.class, () -> lanes.leases(0));
        assertThrows(IllegalArgumentException.class, () -> lanes.probe(Duration.ZERO, Duration.ofSeconds(1)));
        assertThrows(IllegalArgumentException.class, () -> FlushCoalescing.customizer(0));
        assertThrows(IllegalArgumentException.class, () -> lanes.by(Lane.KEY).whenLost(WhenLost.MOVE).connect());
        int nobody = Server.freePort();
        LanesException error = assertThrows(LanesException.class, () -> Lanes.of(client(nobody)).count(2).connect());
        assertTrue(error.getMessage().startsWith("Lane 0 of 2 could not be opened: "), error.getMessage());
    }
}
