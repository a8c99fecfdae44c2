package io.brisk.lettuce.boot;

import io.brisk.lettuce.Lane;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;

/**
 * The settings, read when the first bean is made; see {@code spring-configuration-metadata.json} for their meaning.
 */
record LanesProperties(int lanes, Lane by, boolean coalescing) {

    static LanesProperties of(Environment environment) {
        Binder binder = Binder.get(environment);
        return new LanesProperties(binder.bind("brisk.lettuce.lanes", Integer.class).orElse(0),
                binder.bind("brisk.lettuce.by", Lane.class).orElse(Lane.KEY),
                binder.bind("brisk.lettuce.coalescing", Boolean.class).orElse(false));
    }

    /** Lanes are wanted only if they are named. */
    boolean isWanted() {
        return lanes != 0;
    }
}
