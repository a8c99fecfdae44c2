//! The bodies of the fuzz targets, and of tests that feed mutated bytes.
//! They panic on a difference.

use crate::rdb::{Event, RdbReader, Value, dump};

/// A value from bytes without a footer: what is read must be written so that it reads the same.
/// O(input and content of its LZF blocks).
pub fn fuzz_dump(data: &[u8]) {
    let Some((version, body)) = data.split_first() else {
        return;
    };
    let Ok(value) = dump::read_body(body, u32::from(*version)) else {
        return;
    };
    let once = dump::write(&value);
    let again = dump::read(&once).expect("what was written can be read");
    assert_eq!(again.type_name(), value.type_name());
    assert_eq!(dump::write(&again), once, "written twice alike");
}

/// A whole file, its checksum ignored. O(as [`fuzz_dump`]).
pub fn fuzz_file(data: &[u8]) {
    let Ok(reader) = RdbReader::new(data) else {
        return;
    };
    let mut reader = reader.ignore_checksum().skip_modules();
    while let Ok(Some(event)) = reader.next_event() {
        if let Event::Entry(entry) = event {
            check_writable(&entry.value);
        }
    }
}

fn check_writable(value: &Value) {
    assert!(dump::read(&dump::write(value)).is_ok(), "what was written can be read");
}
