//! Commands from another server's stream, which this server executes and relays.

use super::*;
use crate::env::effect::Hooks;
use brisk_resp::request;

#[test]
fn relayed_changes_keep_their_form_and_other_changes_are_not_relayed() {
    let world = World::new();
    world.env.set_hooks(Hooks::PROPAGATE, true);
    let journal = world.keyspace.journal();
    let write = |words: [&[u8]; 3]| {
        world.with(HOME, &[words[1]], |keys, found| {
            keys.set_string(&found[0], words[2], Overwrite::Persist, "set");
            keys.close(|out| request::encode(out, &words))
        })
    };
    let took = || {
        let mut bytes = Vec::new();
        journal.take(&mut bytes, &mut Vec::new());
        assert!(!world.env.aftermath.borrow().has_effects(), "effects without a ticket");
        String::from_utf8(bytes).unwrap()
    };
    let begin = |bytes: &[u8]| world.env.aftermath.borrow_mut().begin_relay(bytes, None);
    let end = |bytes: &[u8]| {
        world.env.aftermath.borrow_mut().end_relay(journal, Some((bytes, None)));
    };
    journal.set_relayed(true);
    begin(b"its words");
    assert_eq!(write([b"SET", b"a", b"1"]), Some(journal.end()));
    assert_eq!(took(), "its words");
    end(b"its words");
    assert_eq!(took(), "");
    // A command that changes nothing is part of the stream, too.
    begin(b"a question");
    world.with(HOME, &[b"a"], |keys, _| {
        assert_eq!(keys.close(|out| request::encode(out, &["GET"])), None)
    });
    end(b"a question");
    assert_eq!(took(), "a question");
    // Changes by clients of this server are not part of the stream.
    assert_eq!(write([b"SET", b"own", b"1"]), Some(journal.end()));
    assert_eq!(took(), "");
    // The server stopped following the other one before its command ran.
    begin(b"too late");
    journal.set_relayed(false);
    write([b"SET", b"a", b"2"]);
    end(b"too late");
    let own = took();
    assert!(own.contains("SELECT") && own.ends_with("\r\n$1\r\na\r\n$1\r\n2\r\n"), "{own}");
}
