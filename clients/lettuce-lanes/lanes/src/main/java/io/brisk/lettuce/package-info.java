/**
 * Several shared Lettuce connections behind one.
 * <p>
 * Begin at {@link io.brisk.lettuce.Lanes}: it connects N real connections, the lanes, and gives back one
 * {@link io.brisk.lettuce.LanesConnection} that is used like any other
 * {@link io.lettuce.core.api.StatefulRedisConnection}. {@link io.brisk.lettuce.Lane} says by which rule a command finds
 * its lane. {@link io.brisk.lettuce.FlushCoalescing} joins the writes of concurrent commands, with lanes or without.
 * {@link io.brisk.lettuce.LeasePool} lends connections to callers that need one for themselves.
 */
package io.brisk.lettuce;
