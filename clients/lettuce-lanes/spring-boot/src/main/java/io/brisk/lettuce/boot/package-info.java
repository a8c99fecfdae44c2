/**
 * Lanes for Spring Boot, by the property {@code brisk.lettuce.lanes}.
 */
package io.brisk.lettuce.boot;
