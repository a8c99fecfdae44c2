package io.brisk.lettuce;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.brisk.lettuce.testkit.Server;
import io.lettuce.core.BitFieldArgs;
import io.lettuce.core.GeoArgs;
import io.lettuce.core.KeyScanCursor;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LMoveArgs;
import io.lettuce.core.Limit;
import io.lettuce.core.Range;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.SortArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.ZAddArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import reactor.core.publisher.Flux;

/**
 * Runs one suite of commands on a plain connection and on lanes with each rule: the replies must be equal.
 */
class ContractTest extends ServerCase {

    /** The steps run in order; their replies or errors are compared. */
    private static final Map<String, Function<RedisCommands<String, String>, Object>> STEPS = new LinkedHashMap<>();

    private static void step(String name, Function<RedisCommands<String, String>, Object> step) {
        STEPS.put(name, step);
    }

    static {
        strings();
        lists();
        hashesAndSets();
        sortedSets();
        streamsAndTheRest();
    }

    private static void strings() {
        step("set", c -> c.set("s", "one"));
        step("get", c -> c.get("s"));
        step("get of nothing", c -> c.get("nothing"));
        step("set nx", c -> c.set("s", "two", SetArgs.Builder.nx()));
        step("set xx ex", c -> c.set("s", "two", SetArgs.Builder.xx().ex(100)));
        step("setget", c -> c.setGet("s", "three"));
        step("append", c -> c.append("s", "!"));
        step("strlen", c -> c.strlen("s"));
        step("getrange", c -> c.getrange("s", 1, 3));
        step("setrange", c -> c.setrange("s", 2, "XY"));
        step("getdel", c -> c.getdel("s"));
        step("incr", c -> c.incr("n"));
        step("incrby", c -> c.incrby("n", 41));
        step("decrby", c -> c.decrby("n", 2));
        step("incrbyfloat", c -> c.incrbyfloat("f", 1.5));
        step("incr of text", c -> {
            c.set("text", "abc");
            return c.incr("text");
        });
        step("mset", c -> c.mset(Map.of("{m}a", "1", "{m}b", "2")));
        step("mget", c -> c.mget("{m}a", "{m}b", "{m}c"));
        step("msetnx", c -> c.msetnx(Map.of("{m}a", "9", "{m}d", "9")));
        step("setbit", c -> c.setbit("bits", 7, 1));
        step("getbit", c -> c.getbit("bits", 7));
        step("bitcount", c -> c.bitcount("bits"));
        step("bitfield", c -> c.bitfield("field", BitFieldArgs.Builder.incrBy(BitFieldArgs.unsigned(4), 0, 9)));
        step("pfadd", c -> c.pfadd("hll", "a", "b", "c"));
        step("pfcount", c -> c.pfcount("hll"));
    }

    private static void lists() {
        step("rpush", c -> c.rpush("l", "a", "b", "c", "d"));
        step("lpush", c -> c.lpush("l", "z"));
        step("lrange", c -> c.lrange("l", 0, -1));
        step("lindex", c -> c.lindex("l", 1));
        step("linsert", c -> c.linsert("l", true, "b", "between"));
        step("lpos", c -> c.lpos("l", "c"));
        step("lrem", c -> c.lrem("l", 1, "between"));
        step("lset", c -> c.lset("l", 0, "y"));
        step("ltrim", c -> c.ltrim("l", 0, 3));
        step("lmove", c -> c.lmove("l", "l2", LMoveArgs.Builder.leftRight()));
        step("lpop", c -> c.lpop("l"));
        step("lpop two", c -> c.lpop("l", 2));
        step("rpop of nothing", c -> c.rpop("nothing"));
        step("llen", c -> c.llen("l"));
        step("a list is not a string", c -> {
            c.rpush("l", "x");
            return c.get("l");
        });
        step("sort", c -> {
            c.rpush("numbers", "3", "1", "2");
            return c.sort("numbers", SortArgs.Builder.desc());
        });
    }

    private static void hashesAndSets() {
        step("hset", c -> c.hset("h", Map.of("a", "1", "b", "2")));
        step("hget", c -> c.hget("h", "a"));
        step("hmget", c -> c.hmget("h", "a", "x"));
        step("hgetall", c -> c.hgetall("h"));
        step("hincrby", c -> c.hincrby("h", "a", 5));
        step("hdel", c -> c.hdel("h", "b"));
        step("hexists", c -> c.hexists("h", "b"));
        step("hlen", c -> c.hlen("h"));
        step("hkeys", c -> c.hkeys("h"));
        step("hvals", c -> c.hvals("h"));
        step("hscan", c -> c.hscan("h").getMap());
        step("hsetnx", c -> c.hsetnx("h", "a", "7"));
        step("sadd", c -> c.sadd("{s}1", "a", "b", "c"));
        step("smembers", c -> new TreeSet<>(c.smembers("{s}1")));
        step("sismember", c -> c.sismember("{s}1", "a"));
        step("smismember", c -> c.smismember("{s}1", "a", "q"));
        step("scard", c -> c.scard("{s}1"));
        step("sinter", c -> {
            c.sadd("{s}2", "b", "c", "d");
            return new TreeSet<>(c.sinter("{s}1", "{s}2"));
        });
        step("sunionstore", c -> c.sunionstore("{s}3", "{s}1", "{s}2"));
        step("sdiff", c -> new TreeSet<>(c.sdiff("{s}3", "{s}1")));
        step("smove", c -> c.smove("{s}3", "{s}2", "a"));
        step("srem", c -> c.srem("{s}3", "b", "c"));
    }

    private static void sortedSets() {
        step("zadd", c -> c.zadd("z", 1.0, "a", 2.5, "b", 3.0, "c"));
        step("zadd gt", c -> c.zadd("z", ZAddArgs.Builder.gt().ch(), 0.5, "a"));
        step("zscore", c -> c.zscore("z", "b"));
        step("zrange", c -> c.zrange("z", 0, -1));
        step("zrangeWithScores", c -> c.zrangeWithScores("z", 0, -1));
        step("zrangebyscore", c -> c.zrangebyscore("z", Range.create(2, 3), Limit.from(1)));
        step("zrank", c -> c.zrank("z", "c"));
        step("zrevrank", c -> c.zrevrank("z", "c"));
        step("zincrby", c -> c.zincrby("z", 10, "a"));
        step("zcount", c -> c.zcount("z", Range.unbounded()));
        step("zmscore", c -> c.zmscore("z", "a", "q"));
        step("zpopmin", c -> c.zpopmin("z"));
        step("zrem", c -> c.zrem("z", "c"));
        step("zcard", c -> c.zcard("z"));
        step("geoadd", c -> c.geoadd("g", 13.361389, 38.115556, "Palermo"));
        step("geoadd another", c -> c.geoadd("g", 15.087269, 37.502669, "Catania"));
        step("geodist", c -> c.geodist("g", "Palermo", "Catania", GeoArgs.Unit.km));
    }

    private static void streamsAndTheRest() {
        step("xadd", c -> {
            c.dispatch(CommandType.XADD, new StatusOutput<>(StringCodec.UTF8),
                    new CommandArgs<>(StringCodec.UTF8).addKey("x").add("1-1").add("f").addValue("v"));
            return c.xlen("x");
        });
        step("xrange", c -> c.xrange("x", Range.create("-", "+")));
        step("xgroup", c -> c.xgroupCreate(XReadArgs.StreamOffset.from("x", "0-0"), "group"));
        step("xreadgroup", c -> c.xreadgroup(io.lettuce.core.Consumer.from("group", "me"),
                XReadArgs.StreamOffset.lastConsumed("x")));
        step("xpending", c -> c.xpending("x", "group").getCount());
        step("xack", c -> c.xack("x", "group", "1-1"));
        step("xread without block", c -> c.xread(XReadArgs.StreamOffset.from("x", "0")));
        step("expire", c -> c.expire("h", 1000));
        step("ttl", c -> c.ttl("h") > 990);
        step("persist", c -> c.persist("h"));
        step("type", c -> c.type("h"));
        step("exists", c -> c.exists("h", "nothing"));
        step("rename", c -> {
            c.set("{r}old", "v");
            return c.rename("{r}old", "{r}new");
        });
        step("rename of nothing", c -> c.rename("nothing", "nowhere"));
        step("copy", c -> c.copy("{r}new", "{r}copy"));
        step("del", c -> c.del("{r}new", "{r}copy", "nothing"));
        step("unlink", c -> c.unlink("l2"));
        step("eval", c -> c.eval("return {KEYS[1], ARGV[1]}", ScriptOutputType.MULTI, new String[] { "k" }, "v"));
        step("evalsha", c -> c.evalsha(c.scriptLoad("return redis.call('incr', KEYS[1])"), ScriptOutputType.INTEGER, "n"));
        step("evalsha unknown", c -> c.evalsha("0".repeat(40), ScriptOutputType.INTEGER, "n"));
        step("publish", c -> c.publish("nobody", "m"));
        step("ping", c -> c.ping());
        step("echo", c -> c.echo("e"));
        step("object encoding", c -> c.objectEncoding("n"));
        step("a raw command", c -> c.dispatch(CommandType.GET, new ValueOutput<>(StringCodec.UTF8),
                new CommandArgs<>(StringCodec.UTF8).addKey("n")));
        step("client setname", c -> c.clientSetname("me"));
        step("client getname", c -> c.clientGetname());
        step("keys", c -> new TreeSet<>(c.keys("*")));
        step("scan", c -> {
            List<String> found = new ArrayList<>();
            KeyScanCursor<String> cursor = c.scan(ScanArgs.Builder.limit(5));
            found.addAll(cursor.getKeys());
            while (!cursor.isFinished()) {
                cursor = c.scan(cursor, ScanArgs.Builder.limit(5));
                found.addAll(cursor.getKeys());
            }
            return new TreeSet<>(found);
        });
        step("dbsize", c -> c.dbsize());
    }

    private static List<String> replies(StatefulRedisConnection<String, String> connection) {
        RedisCommands<String, String> sync = connection.sync();
        sync.flushall();
        List<String> replies = new ArrayList<>();
        STEPS.forEach((name, step) -> {
            Object reply;
            try {
                reply = step.apply(sync);
            } catch (RedisCommandExecutionException e) {
                reply = "error " + e.getMessage();
            }
            replies.add(name + " = " + reply);
        });
        return replies;
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void every_rule_replies_as_a_plain_connection(Server.Kind kind) {
        RedisClient client = client(port(kind));
        RedisClient coalescing = coalescingClient(port(kind));
        List<String> plain = replies(client.connect());
        assertTrue(plain.contains("get = one"), "the suite ran: " + plain);
        for (Lane rule : Lane.values()) {
            assertEquals(plain, replies(Lanes.of(client).count(4).by(rule).connect()), "rule " + rule);
            assertEquals(plain, replies(Lanes.of(coalescing).count(4).by(rule).counting(true).connect()),
                    "joined writes, rule " + rule);
        }
        assertEquals(plain, replies(coalescing.connect()), "joined writes on a plain connection");
        try (LeasedConnection<String, String> lease = ending(LeasePool.of(client, 1)).borrow(java.time.Duration.ofSeconds(5))) {
            assertEquals(plain, replies(lease), "a lease");
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void futures_and_publishers_give_what_was_set(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(3).connect();
        List<RedisFuture<String>> sets = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            sets.add(lanes.async().set("async" + i, "v" + i));
        }
        for (RedisFuture<String> set : sets) {
            assertEquals("OK", set.get(20, TimeUnit.SECONDS));
        }
        List<String> read = Flux.range(0, 1000).flatMapSequential(i -> lanes.reactive().get("async" + i)).collectList().block();
        for (int i = 0; i < 1000; i++) {
            assertEquals("v" + i, read.get(i));
        }
        List<KeyValue<String, String>> streamed = lanes.reactive().mget("async1", "nothing").collectList().block();
        assertEquals(List.of(KeyValue.just("async1", "v1"), KeyValue.<String, String> empty("nothing")), streamed);
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void commands_held_back_go_out_with_one_flush(Server.Kind kind) throws Exception {
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(3).connect();
        lanes.setAutoFlushCommands(false);
        List<RedisFuture<Long>> pushes = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            pushes.add(lanes.async().incr("held" + i % 7));
        }
        assertTrue(pushes.stream().noneMatch(RedisFuture::isDone));
        lanes.flushCommands();
        for (RedisFuture<Long> push : pushes) {
            push.get(20, TimeUnit.SECONDS);
        }
        lanes.setAutoFlushCommands(true);
        assertEquals("43", lanes.sync().get("held0"));
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void other_codecs_work(Server.Kind kind) {
        byte[] key = { 0, 1, (byte) 255 };
        LanesConnection<byte[], byte[]> lanes = Lanes.of(client(port(kind))).count(3).connect(ByteArrayCodec.INSTANCE);
        lanes.sync().set(key, new byte[] { 9, 0, 9 });
        assertArrayEquals(new byte[] { 9, 0, 9 }, lanes.sync().get(key));
        assertEquals(Collections.singletonList(1L), Collections.singletonList(lanes.sync().del(key)));
    }

    /** With a codec that fails to encode keys, only the future of that command fails. */
    @ParameterizedTest
    @MethodSource("kinds")
    void a_codec_that_throws_fails_its_command_only(Server.Kind kind) throws Exception {
        RedisCodec<String, String> picky = new StringCodec() {

            @Override
            public ByteBuffer encodeKey(String key) {
                if (key.equals("bad")) {
                    throw new IllegalStateException("a bad key");
                }
                return super.encodeKey(key);
            }

            @Override
            public void encodeKey(String key, ByteBuf target) {
                target.writeBytes(encodeKey(key));
            }
        };
        LanesConnection<String, String> lanes = Lanes.of(client(port(kind))).count(2).connect(picky);
        RedisFuture<String> bad = lanes.async().get("bad");
        assertThrows(ExecutionException.class, () -> bad.get(20, TimeUnit.SECONDS));
        assertEquals("OK", lanes.sync().set("good", "v"));
        List<AsyncCommand<String, String, String>> batch = new ArrayList<>();
        for (String key : List.of("good", "bad", "good")) {
            batch.add(new AsyncCommand<>(new Command<>(CommandType.GET, new ValueOutput<>(picky),
                    new CommandArgs<>(picky).addKey(key))));
        }
        lanes.dispatch(batch);
        assertEquals("v", batch.get(0).get(20, TimeUnit.SECONDS));
        assertThrows(ExecutionException.class, () -> batch.get(1).get(20, TimeUnit.SECONDS));
        assertEquals("v", batch.get(2).get(20, TimeUnit.SECONDS));
    }
}
