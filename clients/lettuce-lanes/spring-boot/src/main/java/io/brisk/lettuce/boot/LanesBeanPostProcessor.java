package io.brisk.lettuce.boot;

import io.brisk.lettuce.FlushCoalescing;
import io.brisk.lettuce.spring.LanesLettuceConnectionFactory;
import io.lettuce.core.resource.ClientResources;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Replaces the plain connection factory with one that has lanes, before the plain one is initialized.
 * <p>
 * It does not replace Spring Boot's configuration, whose classes moved between versions 3 and 4, but uses its result. A
 * factory of a custom class is left unchanged.
 */
final class LanesBeanPostProcessor implements BeanPostProcessor {

    private final Environment environment;

    private LanesProperties properties;

    LanesBeanPostProcessor(Environment environment) {
        this.environment = environment;
    }

    @Override
    public Object postProcessBeforeInitialization(Object bean, String name) {
        if (bean.getClass() == LettuceConnectionFactory.class && properties().isWanted()) {
            LanesLettuceConnectionFactory lanes = LanesLettuceConnectionFactory.like((LettuceConnectionFactory) bean);
            lanes.setLanes(properties().lanes());
            lanes.setRule(properties().by());
            return lanes;
        }
        if (bean instanceof ClientResources && properties().coalescing()) {
            ClientResources plain = (ClientResources) bean;
            // A view of the same threads and timers; Spring shuts down the plain one.
            return plain.mutate().nettyCustomizer(
                    FlushCoalescing.customizer(FlushCoalescing.LIMIT_DEFAULT, plain.nettyCustomizer())).build();
        }
        return bean;
    }

    private LanesProperties properties() {
        if (properties == null) {
            properties = LanesProperties.of(environment);
        }
        return properties;
    }
}
