/**
 * Sharded connections for Spring Data Redis: a connection factory whose shared connection is a
 * {@link io.brisk.lettuce.LanesConnection}.
 */
package io.brisk.lettuce.spring;
