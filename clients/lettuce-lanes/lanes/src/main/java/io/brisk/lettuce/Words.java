package io.brisk.lettuce;

import io.lettuce.core.protocol.CommandArgs;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * Reads the arguments of a command as the server will see them, whether they were given as strings, keys, values or bytes.
 */
final class Words {

    private final ByteBuf encoded;

    Words(CommandArgs<?, ?> args) {
        encoded = Unpooled.buffer();
        if (args == null) {
            return;
        }
        try {
            args.encode(encoded);
        } catch (RuntimeException e) {
            // A codec of the user's threw. It will again where the command is sent, and fail it there.
            encoded.clear();
        }
    }

    /** The next argument in capitals; empty if it is empty or there is none. */
    String next() {
        if (!encoded.isReadable()) {
            return "";
        }
        // Each is encoded as $length CRLF bytes CRLF.
        encoded.skipBytes(1);
        int length = 0;
        byte digit;
        while ((digit = encoded.readByte()) != '\r') {
            length = 10 * length + digit - '0';
        }
        encoded.skipBytes(1);
        String word = encoded.toString(encoded.readerIndex(), length, StandardCharsets.UTF_8);
        encoded.skipBytes(length + 2);
        return word.toUpperCase(Locale.ROOT);
    }
}
