package io.brisk.lettuce.boot;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Adds joined writes and sharded connections to the Redis connection that Spring Boot configures.
 * <p>
 * Set {@code brisk.lettuce.coalescing=true} or {@code brisk.lettuce.lanes=8}. Host, password, TLS, timeouts and pool stay
 * in {@code spring.data.redis}. Without these properties nothing changes.
 */
@AutoConfiguration
@ConditionalOnClass(LettuceConnectionFactory.class)
public class LanesAutoConfiguration {

    /** Called by Spring. */
    public LanesAutoConfiguration() {
    }

    @Bean
    static LanesBeanPostProcessor briskLanesBeanPostProcessor(Environment environment) {
        return new LanesBeanPostProcessor(environment);
    }
}
