package io.brisk.lettuce.spring;

import io.lettuce.core.codec.RedisCodec;
import java.nio.ByteBuffer;

/**
 * Buffers as they are, which is what Spring's reactive connection speaks.
 */
enum ByteBufferCodec implements RedisCodec<ByteBuffer, ByteBuffer> {

    INSTANCE;

    @Override
    public ByteBuffer decodeKey(ByteBuffer bytes) {
        // The bytes lie in the receive buffer, which will be used again.
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
