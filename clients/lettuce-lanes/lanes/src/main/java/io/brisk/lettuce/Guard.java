package io.brisk.lettuce;

import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.RedisCommand;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Decides which commands cannot be sent on a shared connection, and why.
 * <p>
 * A command that changes the state of its connection would change it for one lane, and therefore for some commands of
 * other callers. A command that blocks would delay all later commands on its lane.
 */
enum Guard {

    /** Sent on one lane. */
    SHARED(null),

    /** Sent on all lanes. */
    EVERY_LANE(null),

    /** Blocks its connection until another client acts. */
    BLOCKING("it would block later commands of other callers."
            + " Use LanesConnection.lease(), or Lanes.autoLease(true) to lease a connection for each blocking command."),

    /** Part of a transaction. */
    TRANSACTION("a transaction needs a connection of its own."
            + " Use LanesConnection.lease(): try (LeasedConnection<K, V> own = lanes.lease()) { own.sync().multi(); ... }"),

    /** Selects a database. */
    DATABASE("it would change the database of one lane only."
            + " Set the database in the RedisURI, or use LanesConnection.lease()."),

    /** Turns the connection into a subscriber. */
    SUBSCRIBER("a subscription needs a connection of its own. Use RedisClient.connectPubSub()."),

    /** Requests push messages, turns off replies, or changes other state of its connection. */
    CONVERSATION("it would change the state of one lane only."
            + " Use LanesConnection.lease(), or a separate connection from RedisClient.connect()."),

    /** Refers to earlier commands of the same connection. */
    REFERS_BACK("it refers to earlier writes of the same connection, but writes are spread over several."
            + " Use LanesConnection.lease(), and send the writes on the lease, too."),

    /** Closes or resets the connection. */
    END("it would close or reset one lane. Close the LanesConnection instead.");

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

    /** Returns the guard of a command. */
    static Guard of(RedisCommand<?, ?, ?> command) {
        String name = nameOf(command.getType());
        Guard guard = BY_NAME.get(name);
        if (guard != null) {
            return guard;
        }
        switch (name) {
            case "CLIENT":
                return ofClient(new ArgumentReader(command.getArgs()).next());
            case "SCRIPT":
                return new ArgumentReader(command.getArgs()).next().equals("DEBUG") ? CONVERSATION : SHARED;
            case "HIMPORT":
                return ofHashImport(new ArgumentReader(command.getArgs()).next());
            case "XREAD":
            case "XREADGROUP":
                return blocks(new ArgumentReader(command.getArgs())) ? BLOCKING : SHARED;
            default:
                return SHARED;
        }
    }

    /** Returns the error for a command that is rejected. Its message names the alternative. */
    LanesException refusal(RedisCommand<?, ?, ?> command) {
        return new LanesException(fullNameOf(command) + " cannot be sent on a shared connection: " + reason);
    }

    /** Returns the name of a rejected command, with the subcommand or the option that decides. */
    private static String fullNameOf(RedisCommand<?, ?, ?> command) {
        String name = nameOf(command.getType());
        switch (name) {
            case "CLIENT":
            case "SCRIPT":
            case "HIMPORT":
                return (name + " " + new ArgumentReader(command.getArgs()).next()).trim();
            case "XREAD":
            case "XREADGROUP":
                return name + " with BLOCK";
            default:
                return name;
        }
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

    /** Lettuce's import API sends PREPARE on each connection itself, at a lower layer. Only SET passes through here. */
    private static Guard ofHashImport(String subcommand) {
        return subcommand.equals("SET") ? SHARED : CONVERSATION;
    }

    /** Returns whether an XREAD or XREADGROUP has the option BLOCK, which precedes STREAMS. */
    private static boolean blocks(ArgumentReader arguments) {
        while (true) {
            switch (arguments.next()) {
                case "BLOCK":
                    return true;
                case "STREAMS":
                case "":
                    return false;
                case "GROUP":
                    // The group and the consumer may have the names of options.
                    arguments.next();
                    arguments.next();
                    break;
                default:
            }
        }
    }

    /** Returns the name of a command in upper case. */
    static String nameOf(ProtocolKeyword type) {
        if (type instanceof CommandType) {
            return type.toString();
        }
        // A custom keyword: only its bytes are certain to be the command's name.
        return new String(type.getBytes(), StandardCharsets.US_ASCII).toUpperCase(Locale.ROOT);
    }
}
