package io.brisk.lettuce;

import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.RedisCommand;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Says which commands may not go over shared lanes as they are, and why.
 * <p>
 * A command that changes the state of its connection would change it for one lane and so for some commands of some
 * callers; a command that blocks would hold up all that come behind it on its lane.
 */
enum Guard {

    /** Goes to one lane. */
    SHARED(null),

    /** Goes to all lanes. */
    EVERY_LANE(null),

    /** Blocks its connection until something happens. */
    BLOCKING("it blocks its connection and everything behind it on that lane."
            + " Use LanesConnection.lease(), or Lanes.autoLease(true) to have a connection leased for each such command."),

    /** Part of a transaction. */
    TRANSACTION("a transaction belongs to one connection, and others share this one."
            + " Use LanesConnection.lease(): try (LeasedConnection<K, V> own = lanes.lease()) { own.sync().multi(); ... }"),

    /** Chooses a database. */
    DATABASE("it would change the database for one lane only."
            + " Name the database in the RedisURI, or use LanesConnection.lease()."),

    /** Turns the connection into a subscriber. */
    SUBSCRIBER("subscriptions need a connection of their own. Use RedisClient.connectPubSub()."),

    /** Asks for pushes of the server, or for no replies. */
    CONVERSATION("it changes what the server sends over one lane."
            + " Use LanesConnection.lease(), or a connection of its own from RedisClient.connect()."),

    /** Speaks of what was sent before on the same connection. */
    REFERS_BACK("it speaks of what was written before on the same connection, and lanes are several."
            + " Use LanesConnection.lease() and write over the lease, too."),

    /** Ends or resets the connection. */
    END("it would end or reset one lane. Close the LanesConnection instead.");

    private static final Map<String, Guard> BY_NAME = new HashMap<>();

    private final String reason;

    static {
        put(TRANSACTION, "MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH");
        put(DATABASE, "SELECT");
        put(SUBSCRIBER, "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE");
        put(CONVERSATION, "MONITOR", "HELLO", "SYNC", "PSYNC", "REPLCONF", "ASKING");
        put(END, "QUIT", "RESET");
        put(REFERS_BACK, "WAIT", "WAITAOF");
        put(BLOCKING, "BLPOP", "BRPOP", "BLMOVE", "BLMOVEM", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP");
        put(EVERY_LANE, "AUTH", "READONLY", "READWRITE");
    }

    Guard(String reason) {
        this.reason = reason;
    }

    private static void put(Guard guard, String... names) {
        for (String name : names) {
            BY_NAME.put(name, guard);
        }
    }

    /** What is to be done with a command. */
    static Guard of(RedisCommand<?, ?, ?> command) {
        String name = nameOf(command.getType());
        Guard guard = BY_NAME.get(name);
        if (guard != null) {
            return guard;
        }
        switch (name) {
            case "CLIENT":
                return ofClient(command.getArgs());
            case "XREAD":
            case "XREADGROUP":
                return blocks(command.getArgs()) ? BLOCKING : SHARED;
            default:
                return SHARED;
        }
    }

    /** The sentence for the user. */
    LanesException refusal(RedisCommand<?, ?, ?> command) {
        return new LanesException(nameOf(command.getType()) + " cannot be sent over lanes: " + reason);
    }

    private static Guard ofClient(CommandArgs<?, ?> args) {
        String[] words = words(args);
        switch (words.length == 0 ? "" : words[0]) {
            case "TRACKING":
            case "CACHING":
            case "REPLY":
                return CONVERSATION;
            case "SETNAME":
            case "SETINFO":
            case "NO-EVICT":
            case "NO-TOUCH":
                return EVERY_LANE;
            default:
                return SHARED;
        }
    }

    /** Whether an XREAD or XREADGROUP has the option BLOCK, which stands before STREAMS. */
    private static boolean blocks(CommandArgs<?, ?> args) {
        for (String word : words(args)) {
            if (word.equals("STREAMS")) {
                return false;
            }
            if (word.equals("BLOCK")) {
                return true;
            }
        }
        return false;
    }

    private static String[] words(CommandArgs<?, ?> args) {
        return args == null ? new String[0] : args.toCommandString().toUpperCase(Locale.ROOT).split(" ");
    }

    private static String nameOf(ProtocolKeyword type) {
        if (type instanceof CommandType) {
            return type.toString();
        }
        // A user's own keyword: only its bytes are sure to be the command's name.
        return new String(type.getBytes(), StandardCharsets.US_ASCII).toUpperCase(Locale.ROOT);
    }
}
