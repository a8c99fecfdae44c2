//! Measures the speed and the memory use of analyzing a snapshot. `rdb_rate FILE [MEBIBYTES]` creates the file if it
//! does not exist (512 MiB by default), with keys of all types whose names and texts differ. Then it analyzes the file,
//! and prints the rate and the peak memory of the process.

use brisk_analyze::Analysis;
use brisk_analyze::measure::Limits;
use brisk_analyze::model::Classes;
use brisk_analyze::progress::Progress;
use brisk_analyze::source::rdb::read_file;
use brisk_persist::rdb::strings::Strings;
use brisk_persist::rdb::value::{HashValue, SetValue, SortedSetValue, StringValue};
use brisk_persist::rdb::{KeyMetadata, RdbWriter, VERSION, Value};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write, stdout};
use std::path::Path;
use std::time::Instant;

const MEBIBYTES_DEFAULT: u64 = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("usage: rdb_rate FILE [MEBIBYTES]")?;
    let mebibytes = words.next().map_or(Ok(MEBIBYTES_DEFAULT), |word| word.parse())?;
    let path = Path::new(&name);
    if !path.exists() {
        make(path, mebibytes << 20)?;
    }
    let bytes = fs::metadata(path)?.len();
    let begun = Instant::now();
    let mut analysis = Analysis::new(Classes::BUNDLED, Limits::default(), 0);
    read_file(path, &mut analysis, &mut Progress::new())?;
    let seconds = begun.elapsed().as_secs_f64();
    let (groups, nodes) = analysis.held();
    let keys = analysis.keys();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let rate = bytes as f64 / f64::from(1 << 20) / seconds;
    writeln!(
        stdout(),
        "{keys} keys, {bytes} bytes in {seconds:.1} s: {rate:.0} MiB/s; {groups} groups, {nodes} nodes; {peak}"
    )?;
    Ok(())
}

/// Reproducible pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn text(&mut self, len: u64) -> Vec<u8> {
        (0..len).map(|_| b"abcdefghijklmnop "[self.below(17) as usize]).collect()
    }
}

fn make(path: &Path, bytes: u64) -> Result<(), Box<dyn Error>> {
    let mut file = RdbWriter::new(BufWriter::new(File::create(path)?), VERSION);
    file.select_db(0);
    let mut random = Random(1);
    let mut n = 0_u64;
    while file.bytes() < bytes {
        n += 1;
        let (key, value) = entry(n, &mut random);
        let expire_at_ms = n.is_multiple_of(3).then_some(2_000_000_000_000);
        file.entry(key.as_bytes(), KeyMetadata { expire_at_ms, ..KeyMetadata::default() }, &value);
    }
    file.finish()?.flush()?;
    Ok(())
}

fn entry(n: u64, random: &mut Random) -> (String, Value) {
    let texts = |random: &mut Random, count: u64, len: u64| -> Strings {
        (0..count).map(|at| [at.to_string().into_bytes(), random.text(len)].concat()).collect()
    };
    match n % 20 {
        0 => {
            let fields = texts(random, 20, 12);
            (format!("session:{n:016x}:data"), Value::Hash(HashValue::Fields(fields)))
        }
        1 => {
            let members = texts(random, 10, 10);
            (format!("followers:{n}"), Value::Set(SetValue::Members(members)))
        }
        2 => {
            let members = texts(random, 10, 10);
            let scores = (0..10).map(f64::from).collect();
            (format!("board:{n}"), Value::SortedSet(SortedSetValue::Members(members, scores)))
        }
        3..8 => {
            let len = 200 + random.below(400);
            (format!("page:{n}:html"), Value::String(StringValue::Bytes(random.text(len))))
        }
        _ => (format!("user:{n}:name"), Value::String(StringValue::Bytes(random.text(20)))),
    }
}
