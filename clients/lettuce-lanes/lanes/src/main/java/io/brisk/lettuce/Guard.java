package io.brisk.lettuce;

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

    /** Asks for pushes of the server, or for no replies, or leaves something else behind on its connection. */
    CONVERSATION("it would change what goes over one lane, and not the others."
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
                return ofClient(new Words(command.getArgs()).next());
            case "SCRIPT":
                return new Words(command.getArgs()).next().equals("DEBUG") ? CONVERSATION : SHARED;
            case "HIMPORT":
                return ofHashImport(new Words(command.getArgs()).next());
            case "XREAD":
            case "XREADGROUP":
                return blocks(new Words(command.getArgs())) ? BLOCKING : SHARED;
            default:
                return SHARED;
        }
    }

    /** The sentence for the user. */
    LanesException refusal(RedisCommand<?, ?, ?> command) {
        return new LanesException(nameOf(command.getType()) + " cannot be sent over lanes: " + reason);
    }

    private static Guard ofClient(String subcommand) {
        switch (subcommand) {
            case "TRACKING":
            case "CACHING":
            case "REPLY":
                return CONVERSATION;
            case "SETNAME":
            case "SETINFO":
            case "NO-EVICT":
            case "NO-TOUCH":
            case "CAPA":
            case "IMPORT-SOURCE":
                return EVERY_LANE;
            default:
                return SHARED;
        }
    }

    /** Lettuce's own way to import prepares each connection by itself, below here, and sends SET only. */
    private static Guard ofHashImport(String subcommand) {
        return subcommand.equals("SET") ? SHARED : CONVERSATION;
    }

    /** Whether an XREAD or XREADGROUP has the option BLOCK, which stands before STREAMS. */
    private static boolean blocks(Words words) {
        while (true) {
            switch (words.next()) {
                case "BLOCK":
                    return true;
                case "STREAMS":
                case "":
                    return false;
                case "GROUP":
                    // The group and the consumer may be named as options are.
                    words.next();
                    words.next();
                    break;
                default:
            }
        }
    }

    /** The name of a command in capitals, however it was given. */
    static String nameOf(ProtocolKeyword type) {
        if (type instanceof CommandType) {
            return type.toString();
        }
        // A user's own keyword: only its bytes are sure to be the command's name.
        return new String(type.getBytes(), StandardCharsets.US_ASCII).toUpperCase(Locale.ROOT);
    }
}
