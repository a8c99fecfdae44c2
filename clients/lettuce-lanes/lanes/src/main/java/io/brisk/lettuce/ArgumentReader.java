package io.brisk.lettuce;

import io.lettuce.core.protocol.CommandArgs;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * Reads the arguments of a command as the server will receive them, whether they were added as strings, keys, values or
 * bytes.
 */
final class ArgumentReader {

    private final ByteBuf encoded;

    ArgumentReader(CommandArgs<?, ?> args) {
        encoded = Unpooled.buffer();
        if (args == null) {
            return;
        }
        try {
            args.encode(encoded);
        } catch (RuntimeException e) {
            // The caller's codec failed. The codec will fail again when the command is sent, and then the command
            // fails.
            encoded.clear();
        }
    }

    /** Returns the next argument in upper case; an empty string if it is empty or there is none. */
    String next() {
        if (!encoded.isReadable()) {
            return "";
        }
        // Each argument is encoded as $length CRLF bytes CRLF.
        encoded.skipBytes(1);
        int length = 0;
        byte digit;
        while ((digit = encoded.readByte()) != '\r') {
            length = 10 * length + digit - '0';
        }
        encoded.skipBytes(1);
        String argument = encoded.toString(encoded.readerIndex(), length, StandardCharsets.UTF_8);
        encoded.skipBytes(length + 2);
        return argument.toUpperCase(Locale.ROOT);
    }
}
