package io.brisk.lettuce;

import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;

/**
 * A keyword that is defined only by its bytes, as users define commands that Lettuce does not know.
 */
final class OwnKeyword implements ProtocolKeyword {

    private final String word;

    OwnKeyword(String word) {
        this.word = word;
    }

    @Override
    public byte[] getBytes() {
        return word.getBytes(StandardCharsets.US_ASCII);
    }

    /** Required by Lettuce before 7.0. No annotation, since later versions do not declare it. */
    public String name() {
        return "OWN";
    }
}
