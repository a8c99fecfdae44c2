//! Measures how fast a file of commands is read, with batches and without: `cargo run --release -p
//! brisk-persist --example aof_rate [COMMANDS]`. The file is in memory.
#![expect(clippy::print_stdout, reason = "the measurements are the output of the program")]

use brisk_persist::aof::{AofEventKind, AofReader, writer};
use std::hint::black_box;
use std::io::Cursor;
use std::time::Instant;

/// Number of commands in the file, unless an argument sets a different number.
const COMMANDS: u64 = 10_000_000;
/// Size of a batch in bytes.
const BATCH_BYTES: usize = 1 << 20;
const RUNS: usize = 3;

fn main() {
    let argument = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let commands = argument.unwrap_or(COMMANDS);
    for batches in [false, true] {
        let file = written(commands, batches);
        let bytes = file.len() as f64;
        let what = if batches { "batches" } else { "commands" };
        for _ in 0..RUNS {
            let start = Instant::now();
            let read = read(&file);
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{what}: {read} commands, {:.0} MB in {seconds:.3} s: {:.1} M/s, {:.0} MB/s",
                bytes / 1e6,
                read as f64 / seconds / 1e6,
                bytes / seconds / 1e6,
            );
        }
    }
    let bytes = vec![7; BATCH_BYTES];
    let start = Instant::now();
    let crc = (0..1000).fold(0, |crc, _| writer::crc32c(crc, black_box(&bytes)));
    let rate = (BATCH_BYTES * 1000) as f64 / start.elapsed().as_secs_f64() / 1e9;
    println!("checksum {crc:08x}: {rate:.1} GB/s");
}

fn written(commands: u64, batches: bool) -> Vec<u8> {
    let (mut file, mut batch) = (Vec::new(), Vec::new());
    for number in 1..=commands {
        let key = format!("key:{number:012}");
        writer::command(&mut batch, &["SET", &key, "xxxxxxxxxxxxxxxx"]);
        if batch.len() >= BATCH_BYTES || number == commands {
            if batches {
                writer::batch_line(&mut file, number, &batch);
            }
            file.append(&mut batch);
        }
    }
    file
}

/// Reads all arguments of all commands, and returns the number of commands.
fn read(file: &[u8]) -> u64 {
    let mut reader = AofReader::new(Cursor::new(file), 0).expect("memory can be read");
    let mut commands = 0;
    while let Some(event) = reader.next_event().expect("the file is whole") {
        if let AofEventKind::Command(command) = event.kind {
            commands += u64::from(black_box(command.args().map(<[u8]>::len).sum::<usize>()) > 0);
        }
    }
    commands
}
