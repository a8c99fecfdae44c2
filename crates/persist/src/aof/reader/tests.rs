//! How files end: complete, torn, within a transaction, damaged.

use super::*;
use crate::aof::writer;
use std::io::Cursor;

/// The parts of an event that a test compares.
#[derive(Debug, PartialEq, Eq, Clone)]
enum EventSummary {
    Command(String),
    Timestamp(i64),
    Batch(u64),
    Annotation(String),
}

/// Returns a few bytes at a time.
struct Slow<R>(R, usize);

impl<R: Read> Read for Slow<R> {
    fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
        let len = out.len().min(self.1);
        self.0.read(&mut out[..len])
    }
}

impl<R: Seek> Seek for Slow<R> {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        self.0.seek(to)
    }
}

fn read_all<R: Read + Seek>(mut reader: AofReader<R>) -> (Vec<EventSummary>, Result<(), AofError>) {
    let mut seen = Vec::new();
    loop {
        let position = reader.position();
        match reader.next_event() {
            Ok(None) => return (seen, Ok(())),
            Err(error) => return (seen, Err(error)),
            Ok(Some(event)) => {
                assert_eq!(event.start, position);
                let end = event.end;
                seen.push(match event.kind {
                    AofEventKind::Command(command) => {
                        let args: Vec<_> =
                            command.args().map(|arg| arg.escape_ascii().to_string()).collect();
                        EventSummary::Command(args.join(" "))
                    }
                    AofEventKind::Timestamp(seconds) => EventSummary::Timestamp(seconds),
                    AofEventKind::Batch { ticket, .. } => EventSummary::Batch(ticket),
                    AofEventKind::Annotation(line) => {
                        EventSummary::Annotation(line.escape_ascii().to_string())
                    }
                });
                assert_eq!(reader.position(), end);
            }
        }
    }
}

/// Reads a file in one piece, in small pieces, and with batches read twice. The results must agree.
fn read(file: &[u8]) -> (Vec<EventSummary>, Result<(), AofError>) {
    let (seen, outcome) = read_all(AofReader::new(Cursor::new(file), 0).unwrap());
    let slow = AofReader::new(Slow(Cursor::new(file), 7), 0).unwrap();
    let mut twice = AofReader::new(Slow(Cursor::new(file), 5), 0).unwrap();
    twice.batch_buffered_max = 0;
    for (other, ends) in [read_all(slow), read_all(twice)] {
        assert_eq!(other, seen);
        assert_eq!(format!("{ends:?}"), format!("{outcome:?}"));
    }
    (seen, outcome)
}

fn commands(lines: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        writer::command(&mut out, &line.split(' ').collect::<Vec<_>>());
    }
    out
}

fn batch(ticket: u64, lines: &[&str]) -> Vec<u8> {
    let (mut out, batch) = (Vec::new(), commands(lines));
    writer::batch_line(&mut out, ticket, &batch);
    [out, batch].concat()
}

fn command(line: &str) -> EventSummary {
    EventSummary::Command(line.to_owned())
}

fn torn_at(file: &[u8]) -> Option<u64> {
    match read(file).1 {
        Err(AofError::Torn { at, .. }) => Some(at),
        _ => None,
    }
}

/// The offset up to which a damaged file is valid, and the offset of the next valid item.
fn damaged(file: &[u8]) -> Option<(u64, Option<u64>)> {
    match read(file).1 {
        Err(AofError::Damaged { at, next_valid, .. }) => Some((at, next_valid)),
        _ => None,
    }
}

#[test]
fn everything_that_a_file_may_contain_is_read() {
    let file = [
        &b"#TS:1628217470\r\n# a remark\r\n"[..],
        &commands(&["SELECT 0", "MULTI", "SET k v", "EXEC"]),
        &batch(7, &["SET a 1", "multi", "SET b 2", "exec"]),
        &batch(9, &[]),
        b"#X:1:2\n",
        &commands(&["DEL a"]),
    ]
    .concat();
    let (seen, outcome) = read(&file);
    outcome.unwrap();
    assert_eq!(
        seen,
        [
            EventSummary::Timestamp(1_628_217_470),
            EventSummary::Annotation("# a remark\\r\\n".into()),
            command("SELECT 0"),
            command("MULTI"),
            command("SET k v"),
            command("EXEC"),
            EventSummary::Batch(7),
            command("SET a 1"),
            command("multi"),
            command("SET b 2"),
            command("exec"),
            EventSummary::Batch(9),
            EventSummary::Annotation("#X:1:2\\n".into()),
            command("DEL a"),
        ]
    );
    assert_eq!(read(b"").0, []);
}

#[test]
fn a_truncated_file_is_valid_up_to_its_last_complete_command() {
    let file = commands(&["SET k v", "DEL k", "PING"]);
    let ends: Vec<u64> = ["SET k v", "DEL k", "PING"]
        .iter()
        .scan(0, |end, line| {
            *end += commands(&[line]).len() as u64;
            Some(*end)
        })
        .collect();
    for len in 0..=file.len() {
        let whole = ends.iter().copied().filter(|end| *end <= len as u64).max().unwrap_or(0);
        let expected = (whole < len as u64).then_some(whole);
        assert_eq!(torn_at(&file[..len]), expected, "{len}");
    }
}

#[test]
fn a_file_truncated_in_a_batch_or_its_line_is_valid_up_to_that_line() {
    let first = batch(1, &["SET k v", "SET l w"]);
    let file =
        [first.clone(), b"#TS:1628217470\r\n".to_vec(), batch(2, &["DEL k", "DEL l"])].concat();
    let line = first.len() + "#TS:1628217470\r\n".len();
    for len in 1..file.len() {
        let expected = match len {
            _ if len == first.len() || len == line => None,
            _ if len < first.len() => Some(0),
            _ if len < line => Some(first.len() as u64),
            _ => Some(line as u64),
        };
        assert_eq!(torn_at(&file[..len]), expected, "{len}");
    }
}

#[test]
fn a_last_batch_cut_by_a_crash_is_torn() {
    let first = batch(1, &["SET k v"]);
    let last = batch(2, &["SET k 1", "SET k 2", "SET k 3"]);
    let at = Some(first.len() as u64);
    for hole in 0..last.len() {
        let mut file = [&first[..], &last].concat();
        file[first.len() + hole..].fill(0);
        assert_eq!(torn_at(&file), at, "a tail of zeros from {hole}");
        if hole >= "#B:2:81:xxxxxxxx\r\n".len() {
            let mut file = [&first[..], &last].concat();
            file[first.len() + hole] ^= 1;
            assert_eq!(torn_at(&file), at, "a bit at {hole}");
        }
    }
}

#[test]
fn a_changed_batch_before_a_complete_one_is_damage() {
    let first = batch(1, &["SET k v", "SET l w"]);
    let line = "#B:1:54:xxxxxxxx\r\n".len();
    let file = [&first[..], &batch(2, &["DEL k"])].concat();
    // The letters and the ticket of the line are not covered by the checksum.
    for at in (5..line).chain(line..first.len()) {
        let mut file = file.clone();
        file[at] ^= 0x04;
        let found = damaged(&file).unwrap_or_else(|| panic!("a bit at {at}"));
        // If the line has a different length, commands of the batch itself may be the next valid
        // item.
        let (whole, next_valid) = found;
        let next_valid = next_valid.filter(|next_valid| *next_valid <= first.len() as u64);
        assert!(whole == 0 && next_valid.is_some(), "a bit at {at}: {found:?}");
        if at >= line {
            assert_eq!(next_valid, Some(first.len() as u64), "a bit at {at}");
        }
    }
}

#[test]
fn a_bad_batch_before_another_bad_batch_is_torn() {
    let mut file = [batch(1, &["SET k v"]), batch(2, &["DEL k"])].concat();
    let (bad, also) = (25, file.len() - 3);
    file[bad] ^= 1;
    file[also] ^= 1;
    assert_eq!(torn_at(&file), Some(0));
}

#[test]
fn commands_of_another_server_after_a_bad_batch_are_not_lost() {
    let mut file = batch(1, &["SET k v"]);
    file[25] ^= 1;
    let next_valid = file.len() as u64;
    file.extend(commands(&["SELECT 0", "SET k v"]));
    assert_eq!(damaged(&file), Some((0, Some(next_valid))));
}

#[test]
fn commands_outside_of_batches_follow_redis() {
    // Zeros at the end are damage in this case, not a torn end.
    let file = [commands(&["SET k v"]), vec![0; 10]].concat();
    assert_eq!(damaged(&file), Some((file.len() as u64 - 10, None)));
    for (bad, at) in [
        (&b"PING\r\n"[..], 0),
        (b"*0\r\n", 0),
        (b"*1\r\n$4\r\nPINGxx", 0),
        (b"*1\r\n:4\r\n", 0),
        (b"*1\r\n$4\r\nEXEC\r\n", 0),
        (b"*1\r\n$5\r\nMULTI\r\n*1\r\n$5\r\nMULTI\r\n", 0),
        (b"*1\r\n$4\r\nPING\r\n$", 14),
    ] {
        assert_eq!(damaged(bad), Some((at, None)), "{}", bad.escape_ascii());
    }
    let long = [&b"#"[..], &[b'x'; 1022], b"\r\n"].concat();
    assert_eq!(damaged(&long), Some((0, None)));
    assert!(read(&[&long[..1021], b"\r\n"].concat()).1.is_ok());
}

#[test]
fn an_open_transaction_is_reported_with_its_start() {
    let before = commands(&["SET a 1"]);
    let at = before.len() as u64;
    let file = [before, commands(&["MULTI", "SET b 2"])].concat();
    assert!(matches!(read(&file).1, Err(AofError::OpenMulti { at: found }) if found == at));
    for cut in 1..5 {
        assert_eq!(torn_at(&file[..file.len() - cut]), Some(at));
    }
    let error = read(&file).1.unwrap_err();
    assert_eq!((error.truncate_at(), error.intact_until()), (Some(at), Some(at)));
}

#[test]
fn the_rules_for_batches_are_enforced() {
    let in_batch = |content: &[u8]| {
        let mut out = Vec::new();
        writer::batch_line(&mut out, 1, content);
        [out, content.to_vec()].concat()
    };
    let kind = |file: &[u8]| match read(file).1 {
        Err(AofError::Damaged { fault, .. }) => Some(fault.kind),
        _ => None,
    };
    let open = in_batch(&commands(&["MULTI", "SET k v"]));
    assert_eq!(kind(&open), Some(FaultKind::BatchInTransaction));
    assert_eq!(
        kind(&[commands(&["MULTI"]), batch(1, &["SET k v"])].concat()),
        Some(FaultKind::BatchInTransaction)
    );
    assert_eq!(kind(&in_batch(b"#TS:1\r\n")), Some(FaultKind::AnnotationInBatch));
    assert_eq!(kind(&in_batch(&batch(2, &["PING"]))), Some(FaultKind::AnnotationInBatch));
    let half = commands(&["PING"]);
    let (left, right) = half.split_at(6);
    let split = [in_batch(left), right.to_vec()].concat();
    assert_eq!(kind(&split), Some(FaultKind::BeyondBatch));
    assert_eq!(kind(&in_batch(left)), Some(FaultKind::BeyondBatch));
}

#[test]
fn commands_and_batches_larger_than_any_buffer_are_read() {
    let value = "v".repeat(3 << 20);
    let line = format!("SET k {value}");
    let file = [commands(&["PING", &line]), batch(1, &[&line, "PING", &line]), commands(&["PING"])]
        .concat();
    let (seen, outcome) = read_all(AofReader::new(Cursor::new(&file), 0).unwrap());
    outcome.unwrap();
    let lens: Vec<usize> = seen
        .iter()
        .map(|seen| match seen {
            EventSummary::Command(line) => line.len(),
            _ => 0,
        })
        .collect();
    assert_eq!(lens, [4, line.len(), 0, line.len(), 4, line.len(), 4]);
    let mut twice = AofReader::new(Cursor::new(&file), 0).unwrap();
    twice.batch_buffered_max = 1 << 20;
    assert_eq!(read_all(twice).0, seen);
}

#[test]
fn valid_data_after_a_bad_batch_is_found_at_any_distance() {
    let line = format!("SET k {}", "v".repeat(3 << 20));
    let mut bad = batch(1, &[&line, "PING", &line]);
    bad[1000] ^= 1;
    let next_valid = bad.len() as u64;
    let outcome = |file: &[u8]| {
        let error = read_all(AofReader::new(Cursor::new(file), 0).unwrap()).1.unwrap_err();
        (
            error.truncate_at(),
            error.intact_until(),
            matches!(error, AofError::Damaged { next_valid: Some(at), .. } if at == next_valid),
        )
    };
    assert_eq!(outcome(&bad), (Some(0), Some(0), false));
    let with_batch = [&bad[..], &batch(2, &["PING"])].concat();
    assert_eq!(outcome(&with_batch), (None, Some(0), true));
    let with_command = [&bad[..], &commands(&["PING"])].concat();
    assert_eq!(outcome(&with_command), (None, Some(0), true));
}

#[test]
fn an_announced_length_takes_no_memory() {
    for file in [
        &b"*1\r\n$500000000000\r\nabc"[..],
        b"*2000000000\r\n$0\r\n\r\n",
        b"#B:1:18446744073709551615:00000000\r\n*1\r\n",
        b"#B:1:60000000:00000000\r\n*1\r\n",
    ] {
        let mut reader = AofReader::new(Cursor::new(file), 0).unwrap();
        assert!(matches!(reader.next_event(), Err(AofError::Torn { at: 0, .. })));
        assert!(reader.buffer.len() <= 2 * BUFFER_BYTES, "{}", file.escape_ascii());
    }
}

#[test]
fn nested_claims_of_lines_do_not_take_long() {
    let line = b"#B:1:99999999:00000000\r\n";
    let file = line.repeat(100_000);
    // The search gives up, so nothing may be truncated.
    let outcome = read_all(AofReader::new(Cursor::new(&file), 0).unwrap()).1;
    assert!(matches!(outcome, Err(AofError::Damaged { at: 0, next_valid: Some(_), .. })));
}

#[test]
fn commands_begin_where_the_caller_says() {
    let file = [&b"REDIS0010 and so on"[..], &commands(&["PING"])].concat();
    let mut source = Cursor::new(&file);
    assert!(has_preamble(&mut source).unwrap());
    let reader = AofReader::new(source, 19).unwrap();
    assert_eq!(read_all(reader).0, [command("PING")]);
    assert!(!has_preamble(&mut Cursor::new(b"REDI")).unwrap());
    assert!(!has_preamble(&mut Cursor::new(b"*1\r\n$4\r\nREDIS")).unwrap());
}

/// Batches as a server writes them to an increment, with the number of unsynced bytes before each.
fn continuing_file(batches: &[(u64, &str)]) -> (Vec<u8>, Vec<usize>) {
    let (mut file, mut starts) = (Vec::new(), Vec::new());
    for (ticket, (unsynced, line)) in batches.iter().enumerate() {
        starts.push(file.len());
        let batch = commands(&[line, "DEL k"]);
        writer::batch_line_with_unsynced(&mut file, *unsynced, ticket as u64, &batch);
        file.extend_from_slice(&batch);
    }
    (file, starts)
}

#[test]
fn a_complete_batch_after_a_bad_one_is_damage_only_if_the_bad_one_was_synced() {
    const LEN: u64 = 67;
    let line = "SET k v";
    let (file, starts) = continuing_file(&[(0, line), (0, line), (0, line)]);
    let len = starts[1];
    assert_eq!(len as u64, LEN);
    for at in starts[1] + 20..starts[2] {
        let mut file = file.clone();
        file[at] ^= 0x20;
        assert_eq!(damaged(&file), Some((len as u64, Some(starts[2] as u64))), "{at}");
    }
    let (file, starts) = continuing_file(&[(0, line), (0, line), (LEN, line), (2 * LEN + 1, line)]);
    for (from, to) in [(starts[1], starts[2]), (starts[1] + 3, starts[2] - 3), (0, starts[1])] {
        for lost in [0, 0xff] {
            let mut file = file.clone();
            file[from..to].fill(lost);
            let (is_torn, at) = (torn_at(&file).is_some(), damaged(&file));
            // If the file begins with the lost bytes, no line says whether the first batch was on
            // the disk.
            assert_eq!(is_torn, from > 0, "{from} to {to}: {at:?}");
        }
    }
}

#[test]
fn the_rest_of_a_batch_without_its_line_is_not_taken_for_commands_of_another_server() {
    let (mut file, starts) = continuing_file(&[(0, "SET a 1"), (0, "SET b 2"), (0, "SET c 3")]);
    let second = starts[1];
    file.truncate(starts[2]);
    // Zeros replace the line and a part of the first command.
    for len in 1..file.len() - second {
        let mut file = file.clone();
        file[second..second + len].fill(0);
        assert_eq!(torn_at(&file), Some(second as u64), "{len}");
    }
    // The hole begins within a line, which then extends to the next line end.
    let mut file = [&file[..second], b"#TS:1700000000\r\n", &file[second..]].concat();
    file[second + 6..second + 40].fill(0);
    assert_eq!(torn_at(&file), Some(second as u64));
}

#[test]
fn commands_of_a_server_that_truncated_a_batch_are_not_lost() {
    let (mut file, starts) = continuing_file(&[(0, "SET a 1"), (0, "SET b 2")]);
    let second = starts[1];
    file.truncate(file.len() - "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n".len());
    file.extend(commands(&["SELECT 0"]));
    file.extend_from_slice(b"#TS:1700000000\r\n");
    assert_eq!(damaged(&file).map(|found| found.0), Some(second as u64));
    file.extend(commands(&["SET c 3", "SET c 4"]));
    assert_eq!(damaged(&file).map(|found| found.0), Some(second as u64));
}
