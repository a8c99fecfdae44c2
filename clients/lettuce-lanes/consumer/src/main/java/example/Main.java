package example;

import io.brisk.lettuce.FlushCoalescing;
import io.brisk.lettuce.Lane;
import io.brisk.lettuce.Lanes;
import io.brisk.lettuce.LanesConnection;
import io.brisk.lettuce.LanesException;
import io.brisk.lettuce.LeasedConnection;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.resource.ClientResources;

/**
 * Uses the artifacts as an application does, with a server on the given port. Throws an exception if a check fails.
 */
public final class Main {

    private Main() {
    }

    public static void main(String[] arguments) {
        ClientResources resources = FlushCoalescing.resources(64);
        RedisClient client = RedisClient.create(resources, RedisURI.create("127.0.0.1", Integer.parseInt(arguments[0])));
        for (Lane rule : Lane.values()) {
            try (LanesConnection<String, String> lanes = Lanes.of(client).count(4).by(rule).autoLease(true).connect()) {
                lanes.sync().del("k", "queue", "stream");
                expect("OK", lanes.sync().set("k", "v"));
                expect("v", lanes.async().get("k").toCompletableFuture().join());
                expect("v", lanes.reactive().get("k").block());
                lanes.sync().rpush("queue", "job");
                expect("job", lanes.sync().blpop(1, "queue").getValue());
                expect("[]", lanes.sync().xread(XReadArgs.Builder.block(1), XReadArgs.StreamOffset.from("stream", "0")).toString());
                try (LeasedConnection<String, String> own = lanes.lease()) {
                    own.sync().multi();
                    own.sync().incr("n");
                    expect("1", String.valueOf(own.sync().exec().size()));
                }
                try {
                    lanes.sync().multi();
                    throw new IllegalStateException("MULTI was not refused");
                } catch (RedisException e) {
                    expect("true", String.valueOf(e instanceof LanesException || e.getCause() instanceof LanesException));
                }
            }
        }
        client.shutdown();
        resources.shutdown().syncUninterruptibly();
        System.out.println("consumer: all checks passed");
    }

    private static void expect(String expected, String actual) {
        if (!expected.equals(actual)) {
            throw new IllegalStateException("expected " + expected + ", not " + actual);
        }
    }
}
