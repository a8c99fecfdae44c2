package io.brisk.lettuce.boot;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Gives the Redis connection that Spring Boot configures lanes, and joins its writes.
 * <p>
 * {@code brisk.lettuce.lanes=8} is all that is needed: host, password, TLS, timeouts and pool stay those of
 * {@code spring.data.redis}. Without the property nothing changes.
 */
@AutoConfiguration
@ConditionalOnClass(LettuceConnectionFactory.class)
public class LanesAutoConfiguration {

    /** For Spring. */
    public LanesAutoConfiguration() {
    }

    @Bean
    static LanesBeanPostProcessor briskLanesBeanPostProcessor(Environment environment) {
        return new LanesBeanPostProcessor(environment);
    }
}
