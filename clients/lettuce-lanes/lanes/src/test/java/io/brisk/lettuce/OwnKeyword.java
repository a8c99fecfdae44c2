package io.brisk.lettuce;

import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;

/**
 * A command that is named by its bytes only, as users name those that Lettuce does not know.
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

    /** Lettuce before 7.0 asks for it; no annotation, since later ones do not have it. */
    public String name() {
        return "OWN";
    }
}
