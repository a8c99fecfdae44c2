package io.brisk.lettuce.boot;

import io.brisk.lettuce.Lane;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;

/**
 * The properties, which are read when the first bean is created. {@code spring-configuration-metadata.json} describes
 * them.
 */
record LanesProperties(int lanes, Lane by, boolean coalescing) {

    static LanesProperties of(Environment environment) {
        Binder binder = Binder.get(environment);
        return new LanesProperties(binder.bind("brisk.lettuce.lanes", Integer.class).orElse(0),
                binder.bind("brisk.lettuce.by", Lane.class).orElse(Lane.KEY),
                binder.bind("brisk.lettuce.coalescing", Boolean.class).orElse(false));
    }

    /** Returns whether the number of lanes is set. */
    boolean isWanted() {
        return lanes != 0;
    }
}
