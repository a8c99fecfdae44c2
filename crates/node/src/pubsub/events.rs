//! Keyspace events as messages, selected by `notify-keyspace-events`.

use brisk_config::Config;
use brisk_config::notify::NotifyClasses;
use brisk_engine::Env;
use brisk_engine::effect::{EventClass, Hooks};

/// Sets the events that the commands of a worker publish.
pub(crate) fn take_config(env: &mut Env, config: &Config) {
    let classes = event_classes(config.observe.notify);
    env.settings.events = classes;
    env.hooks.set(Hooks::NOTIFY, !classes.is_empty());
}

/// The engine's classes for the letters of the directive. Empty if no event is to be published.
fn event_classes(letters: NotifyClasses) -> EventClass {
    const PAIRS: &[(NotifyClasses, EventClass)] = &[
        (NotifyClasses::KEYSPACE, EventClass::KEYSPACE),
        (NotifyClasses::KEYEVENT, EventClass::KEYEVENT),
        (NotifyClasses::GENERIC, EventClass::GENERIC),
        (NotifyClasses::STRING, EventClass::STRING),
        (NotifyClasses::LIST, EventClass::LIST),
        (NotifyClasses::SET, EventClass::SET),
        (NotifyClasses::HASH, EventClass::HASH),
        (NotifyClasses::SORTED_SET, EventClass::SORTED_SET),
        (NotifyClasses::EXPIRED, EventClass::EXPIRED),
        (NotifyClasses::EVICTED, EventClass::EVICTED),
        (NotifyClasses::STREAM, EventClass::STREAM),
        (NotifyClasses::MISS, EventClass::KEY_MISS),
        (NotifyClasses::MODULE, EventClass::MODULE),
        (NotifyClasses::NEW, EventClass::NEW),
    ];
    let channels = EventClass::KEYSPACE | EventClass::KEYEVENT;
    let requested = PAIRS.iter().filter(|(framed, _)| letters.intersects(*framed));
    let classes: EventClass = requested.map(|(_, class)| *class).collect();
    let publishes = classes.intersects(channels) && !(classes - channels).is_empty();
    if publishes { classes } else { EventClass::empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(letters: &str) -> EventClass {
        event_classes(NotifyClasses::from_letters(letters.as_bytes()).unwrap_or_default())
    }

    #[test]
    fn without_a_channel_or_without_a_class_nothing_is_published() {
        for letters in ["", "K", "KE", "A", "g$", "mn"] {
            assert_eq!(classes(letters), EventClass::empty(), "{letters}");
        }
        assert_eq!(classes("Ex"), EventClass::KEYEVENT | EventClass::EXPIRED);
        assert!(!classes("KEA").intersects(EventClass::KEY_MISS | EventClass::NEW));
        assert_eq!(classes("KEAmn"), EventClass::all());
    }
}
