/**
 * Auto-configuration for Spring Boot: {@code brisk.lettuce.coalescing} and {@code brisk.lettuce.lanes}.
 */
package io.brisk.lettuce.boot;
