/**
 * Joined writes and sharded connections for Lettuce.
 * <p>
 * {@link io.brisk.lettuce.FlushCoalescing} joins the writes of concurrent commands, on any Lettuce connection.
 * {@link io.brisk.lettuce.Lanes} opens N shared connections, the lanes, and returns one
 * {@link io.brisk.lettuce.LanesConnection}, which is used like any other
 * {@link io.lettuce.core.api.StatefulRedisConnection}. {@link io.brisk.lettuce.Lane} is the rule that selects the lane of
 * a command. {@link io.brisk.lettuce.LeasePool} leases connections to callers that need exclusive use of one.
 */
package io.brisk.lettuce;
