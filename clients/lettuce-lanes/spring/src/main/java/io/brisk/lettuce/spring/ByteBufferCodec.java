package io.brisk.lettuce.spring;

import io.lettuce.core.codec.RedisCodec;
import java.nio.ByteBuffer;

/**
 * Passes buffers through unchanged, as Spring's reactive connection expects.
 */
enum ByteBufferCodec implements RedisCodec<ByteBuffer, ByteBuffer> {

    INSTANCE;

    @Override
    public ByteBuffer decodeKey(ByteBuffer bytes) {
        // The bytes are in the receive buffer, which is reused.
        ByteBuffer copy = ByteBuffer.allocate(bytes.remaining());
        copy.put(bytes);
        copy.flip();
        return copy;
    }

    @Override
    public ByteBuffer decodeValue(ByteBuffer bytes) {
        return decodeKey(bytes);
    }

    @Override
    public ByteBuffer encodeKey(ByteBuffer key) {
        return key.duplicate();
    }

    @Override
    public ByteBuffer encodeValue(ByteBuffer value) {
        return value.duplicate();
    }
}
