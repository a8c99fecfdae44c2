//! The check tools compared with those of a real Redis: they give the same verdicts, exit codes and main lines for
//! intact files, files truncated anywhere, and files with flipped bits. (I5)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_check::report::Stop;
use brisk_check::{aof, rdb};
use brisk_persist::aof::{BaseFormat, Manifest, manifest, writer};
use brisk_testkit::random::Random;
use brisk_testkit::server::{redis_tool, workspace_root};
use brisk_testkit::{Launch, TempDir};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a tool.
#[derive(Debug)]
struct ToolOutput {
    success: bool,
    lines: Vec<String>,
}

impl ToolOutput {
    fn new(success: bool, out: &[u8]) -> ToolOutput {
        let text = String::from_utf8_lossy(out);
        ToolOutput { success, lines: text.lines().map(str::to_owned).collect() }
    }

    /// The lines that both tools print, without the parts that may differ.
    fn main_lines(&self) -> Vec<String> {
        let lines = self.lines.iter().map(|line| main_part(line));
        lines.filter(|line| !line.is_empty()).collect()
    }

    fn has(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }
}

/// The part of a line that both tools print.
fn main_part(line: &str) -> String {
    // Only our tool prints these lines.
    if line.starts_with("[info]") || line.starts_with("[additional info]") {
        return String::new();
    }
    // In a server's log, texts follow the process and the time.
    let line = line.rsplit_once(" # ").map_or(line, |(_, text)| text);
    // Our tool escapes unusual bytes. The real tool prints its own memory after a line without an end.
    let line = line.split_once("got: ").map_or(line, |(before, _)| before);
    // Our tool reports where the data ends, and the real tool where its last read began.
    for text in ["Unexpected EOF reading RDB file", "Reached EOF before reading EXEC for MULTI"] {
        if line.ends_with(text) {
            return text.to_owned();
        }
    }
    if let Some((_, text)) = line.split_once("MODULE AUX for: ") {
        return text.to_owned();
    }
    // The real tool continues counting lines across files.
    match (line.split_once(", ok_up_to_line="), line.contains("filename=/")) {
        (Some((before, after)), false) => {
            format!("{before}{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit()))
        }
        _ => line.to_owned(),
    }
}

fn real(tool: &str, args: &[OsString], input: &str) -> ToolOutput {
    let mut child = Command::new(redis_tool(tool))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A tool without a prompt may exit without reading the input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    ToolOutput::new(output.status.success(), &output.stdout)
}

fn ours(tool: &str, args: &[OsString], input: &str) -> ToolOutput {
    let mut out = Vec::new();
    let outcome = if tool == "redis-check-rdb" {
        rdb::run(tool, args, &mut rdb::Context { out: &mut out, now_ms: 1_700_000_000_000 })
    } else {
        let mut input_left = input.as_bytes();
        let mut terminal =
            aof::Terminal { out: &mut out, answers: &mut input_left, now_ms: 1_700_000_000_000 };
        aof::run(tool, args, &mut terminal)
    };
    match outcome {
        Ok(()) => ToolOutput::new(true, &out),
        Err(Stop::AlreadyReported) => ToolOutput::new(false, &out),
        Err(Stop::Io(error)) => panic!("{error}"),
    }
}

fn words(words: &[&dyn AsRef<OsStr>]) -> Vec<OsString> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

/// Runs both tools on the same file, which neither changes. Returns `(ours, real)`.
#[track_caller]
fn both(tool: &str, path: &Path) -> (ToolOutput, ToolOutput) {
    let args = words(&[&path]);
    (ours(tool, &args, ""), real(tool, &args, ""))
}

#[track_caller]
fn assert_alike(what: &str, (ours, real): &(ToolOutput, ToolOutput)) {
    assert_eq!(ours.main_lines(), real.main_lines(), "{what}");
    assert_eq!(ours.success, real.success, "{what}: {ours:?}");
}

/// The files of a real server, with their manifest.
struct Corpus {
    home: TempDir,
}

impl Corpus {
    /// Creates a base and an increment. The base is an RDB file or consists of commands.
    fn new(preamble: &str, timestamps: &str) -> Corpus {
        let home = TempDir::new();
        let server = Launch::redis()
            .set("dir", home.path("").to_str().unwrap())
            .set("appendonly", "yes")
            .set("appendfsync", "always")
            .set("aof-use-rdb-preamble", preamble)
            .set("aof-timestamp-enabled", timestamps)
            .start();
        let mut conn = server.connect();
        let fill = |conn: &mut brisk_testkit::Conn| {
            for line in [
                "SET k v",
                "SET e v EX 1000000",
                "RPUSH l a b c",
                "MULTI",
                "INCR n",
                "HSET h f v g w",
                "EXEC",
                "SELECT 5",
                "ZADD z 1 a 2 b",
                "SADD s 1 2 3",
                "DEL n",
            ] {
                conn.cmd(line);
            }
        };
        fill(&mut conn);
        conn.cmd("BGREWRITEAOF");
        server.wait_for_info("aof_rewrite_in_progress", |state| state == "0");
        fill(&mut conn);
        server.terminate();
        Corpus { home }
    }

    fn directory(&self) -> PathBuf {
        self.home.path("appendonlydir")
    }

    fn manifest_path(&self) -> PathBuf {
        self.directory().join("appendonly.aof.manifest")
    }

    fn manifest(&self) -> Manifest {
        Manifest::parse(&fs::read(self.manifest_path()).unwrap()).unwrap()
    }

    fn base(&self) -> PathBuf {
        self.manifest().base().unwrap().path_in(&self.directory())
    }

    fn increment(&self) -> PathBuf {
        self.manifest().increments().last().unwrap().path_in(&self.directory())
    }
}

/// Positions at which to truncate: all of a short file, some of a long one.
fn cuts(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by((len / 60).max(1))
}

#[test]
fn intact_files_get_the_same_output() {
    for (preamble, timestamps) in [("yes", "no"), ("no", "yes")] {
        let corpus = Corpus::new(preamble, timestamps);
        for path in [corpus.manifest_path(), corpus.base(), corpus.increment()] {
            let output = both("redis-check-aof", &path);
            assert!(output.0.success, "{output:?}");
            assert_alike(&path.display().to_string(), &output);
        }
        if preamble == "yes" {
            // A single file, as written before version 7.
            let old = corpus.home.path("appendonly.aof");
            let bytes = [fs::read(corpus.base()).unwrap(), fs::read(corpus.increment()).unwrap()];
            fs::write(&old, bytes.concat()).unwrap();
            let output = both("redis-check-aof", &old);
            assert!(output.0.has("RDB preamble is OK, proceeding with AOF tail..."), "{output:?}");
            assert_alike("a single file", &output);
            assert_alike("an RDB file", &both("redis-check-rdb", &corpus.base()));
        }
    }
}

#[test]
fn truncated_command_files_get_the_same_output() {
    let corpus = Corpus::new("no", "yes");
    for path in [corpus.increment(), corpus.base()] {
        let whole = fs::read(&path).unwrap();
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            let output = both("redis-check-aof", &path);
            // The file ends within an annotation. A server would append to that line.
            let line = whole[..len].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if whole[line] == b'#' && line < len {
                assert!(!output.0.success && output.1.success, "{len}: {output:?}");
            } else {
                assert_alike(&format!("{} cut at {len}", path.display()), &output);
            }
        }
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn truncated_parts_get_the_same_output() {
    let corpus = Corpus::new("yes", "no");
    for path in [corpus.base(), corpus.increment()] {
        let whole = fs::read(&path).unwrap();
        for len in cuts(whole.len()) {
            fs::write(&path, &whole[..len]).unwrap();
            let output = both("redis-check-aof", &corpus.manifest_path());
            if len == 0 && path == corpus.base() {
                // Redis's tool ignores the empty base, as Redis itself does.
                assert!(output.1.success && !output.0.success, "{output:?}");
                let said = "appendonly.aof.2.base.rdb is not valid: the file is damaged: its name says \
                            that it is an RDB file, but it is empty";
                assert!(output.0.has(said), "{output:?}");
                continue;
            }
            assert_alike(&format!("{} cut at {len}", path.display()), &output);
        }
        fs::write(&path, &whole).unwrap();
    }
    fs::remove_file(corpus.increment()).unwrap();
    assert_alike("a part is missing", &both("redis-check-aof", &corpus.manifest_path()));
}

#[test]
fn files_of_commands_with_a_changed_bit_get_the_same_verdict() {
    let corpus = Corpus::new("no", "no");
    let path = corpus.increment();
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut random = Random::derived(31, at as u64);
        let mut changed = whole.clone();
        changed[at] ^= 1 << random.below(8);
        fs::write(&path, &changed).unwrap();
        let (ours, real) = both("redis-check-aof", &path);
        let what = format!("byte {at} is {:02x}", changed[at]);
        assert_eq!(ours.success, real.success, "{what}: {ours:?} {real:?}");
        // The real tool accepts a command without arguments, and reports the error after it.
        if changed[at - usize::from(at > 0)..].starts_with(b"*0") {
            continue;
        }
        assert_eq!(ours.main_lines(), real.main_lines(), "{what}");
    }
}

#[test]
fn fixing_prompts_and_truncates_as_the_real_tool_does() {
    let corpus = Corpus::new("no", "no");
    let (path, base) = (corpus.increment(), corpus.base());
    let (whole, base_whole) = (fs::read(&path).unwrap(), fs::read(&base).unwrap());
    let args = words(&[&"--fix", &corpus.manifest_path()]);
    let mut cut = 0;
    for (len, input) in [
        (whole.len(), "y\n"),
        (whole.len() - 3, "y\n"),
        (whole.len() - 3, "n\n"),
        (whole.len() - 3, ""),
        (whole.len() - 60, "Yes\n"),
        (5, "y"),
    ] {
        let results = [ours, real].map(|tool: fn(&str, &[OsString], &str) -> ToolOutput| {
            fs::write(&path, &whole[..len]).unwrap();
            let output = tool("redis-check-aof", &args, input);
            (output, fs::read(&path).unwrap())
        });
        let [(ours, ours_left), (real, real_left)] = results;
        assert_eq!(ours_left, real_left, "{len}, {input:?}");
        cut += usize::from(ours_left.len() < len);
        assert_alike(&format!("{len}, {input:?}"), &(ours, real));
    }
    assert_eq!(cut, 3);
    // Only the last file may be truncated.
    fs::write(&base, &base_whole[..base_whole.len() - 3]).unwrap();
    let output = (ours("redis-check-aof", &args, "y\n"), real("redis-check-aof", &args, "y\n"));
    assert!(output.0.has("because it is not the last file"));
    assert_alike("the base", &output);
    assert_eq!(fs::metadata(&base).unwrap().len() as usize, base_whole.len() - 3);
}

#[test]
fn cutting_at_a_timestamp_leaves_what_the_real_tool_leaves() {
    let home = TempDir::new();
    let path = home.path("appendonly.aof");
    let mut file = Vec::new();
    for second in 1_628_217_470..1_628_217_475i64 {
        writer::timestamp(&mut file, second);
        writer::command(&mut file, &["SET", "k", &second.to_string()]);
    }
    for seconds in ["1628217469", "1628217470", "1628217472", "1628217475", "0", "x", "-1", "12x"] {
        let args = words(&[&"--truncate-to-timestamp", &seconds, &path]);
        let results = [ours, real].map(|tool: fn(&str, &[OsString], &str) -> ToolOutput| {
            fs::write(&path, &file).unwrap();
            let output = tool("redis-check-aof", &args, "");
            (output, fs::read(&path).unwrap())
        });
        let [(ours, ours_left), (real, real_left)] = results;
        assert_eq!(ours_left, real_left, "{seconds}");
        assert_alike(seconds, &(ours, real));
    }
}

#[test]
fn only_the_last_part_is_cut_at_a_timestamp() {
    let home = TempDir::new();
    let mut manifest = Manifest::new();
    manifest.replace_base(b"a", BaseFormat::Commands);
    manifest.new_increment(b"a");
    for file in manifest.files_to_load() {
        let mut bytes = Vec::new();
        writer::command(&mut bytes, &["SELECT", "0"]);
        writer::timestamp(&mut bytes, 1_628_217_470);
        fs::write(file.path_in(&home.path("")), bytes).unwrap();
    }
    let path = home.path(OsStr::from_bytes(&manifest::manifest_name(b"a")).to_str().unwrap());
    fs::write(&path, manifest.format()).unwrap();
    let args = words(&[&"--truncate-to-timestamp", &"1628217469", &path]);
    let output = (ours("redis-check-aof", &args, ""), real("redis-check-aof", &args, ""));
    assert!(!output.0.success && output.0.has("because it is not the last file"), "{output:?}");
    assert_eq!(output.0.success, output.1.success);
}

#[test]
fn manifests_and_arguments_get_the_same_output() {
    let home = TempDir::new();
    let path = home.path("a.manifest");
    for text in [
        "file a seq 1 type b\n!!!\n",
        "# remark\nfile a seq 1 type b\nfile b seq 2 type b\n",
        "file a/b seq 1 type b\n",
        "file none seq 1 type b\n",
        "",
        "plain text\n",
        "x",
    ] {
        fs::write(&path, text).unwrap();
        assert_alike(text, &both("redis-check-aof", &path));
    }
    for args in [&[][..], &["--fix"], &["a", "b"], &["a", "b", "c", "d"], &["/does/not/exist"]] {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let what = format!("{args:?}");
        let (ours, real) = (ours("redis-check-aof", &args, ""), real("redis-check-aof", &args, ""));
        assert_eq!(ours.success, real.success);
        let usage =
            |output: &ToolOutput| output.lines[0].split(' ').skip(2).collect::<Vec<_>>().join(" ");
        assert_eq!(usage(&ours), usage(&real), "{what}");
    }
}

/// With these lines, Redis's tool and server ignore the base. Brisk's server and tool reject them.
#[test]
fn manifests_that_would_drop_a_file_are_not_valid() {
    let home = TempDir::new();
    let path = home.path("x.manifest");
    fs::write(home.path("a"), b"").unwrap();
    fs::write(home.path("i"), b"").unwrap();
    for (text, said) in [
        ("file a seq 1 type b\tfile i seq 1 type i\n", "Found the same key twice in a line"),
        ("file a seq 1 type b x y\nfile i seq 1 type i\n", "Found an unknown key"),
        ("file a seq 1x type b\nfile i seq 1 type i\n", "Invalid AOF manifest file format"),
        ("file a seq 1 type b\nfile a seq 1 type i\n", "Found the same file twice"),
        ("file a seq 1 type b\nfile i seq 1 type i\n# x", "has no newline"),
        ("#file a seq 1 type b\nfile i seq 2 type i\n", "lists no base"),
        ("file a seq 1 type h\n", "lists no file to load"),
    ] {
        fs::write(&path, text).unwrap();
        let (ours, real) = both("redis-check-aof", &path);
        assert!(real.success && !ours.success, "{text}: {ours:?} {real:?}");
        assert!(
            ours.has("*** FATAL AOF MANIFEST FILE ERROR ***") && ours.has(said),
            "{text}: {ours:?}"
        );
    }
    fs::write(&path, "file a seq 1 type b\nfile i seq 1 type i\n").unwrap();
    assert_alike("both are empty", &both("redis-check-aof", &path));
}

/// An RDB file that lost its content is never valid, and there is nothing to truncate.
#[test]
fn a_base_that_is_not_an_rdb_file_is_not_fixed() {
    let home = TempDir::new();
    let (path, base) = (home.path("a.manifest"), home.path("a.1.base.rdb"));
    fs::write(&path, "file a.1.base.rdb seq 1 type b\n").unwrap();
    for lost in [&b""[..], b"REDI", b"*1\r\n$4\r\nPING\r\n", b"*1\r\n$4\r\nPI"] {
        fs::write(&base, lost).unwrap();
        let output = ours("redis-check-aof", &words(&[&"--fix", &path]), "y\n");
        assert!(!output.success, "{output:?}");
        assert_eq!(fs::read(&base).unwrap(), lost);
    }
}

#[test]
fn batches_are_compared_with_their_checksums() {
    let home = TempDir::new();
    let path = home.path("appendonly.aof");
    let mut file = Vec::new();
    for ticket in 1..=3 {
        let mut batch = Vec::new();
        writer::command(&mut batch, &["SET", "key", "value"]);
        writer::batch_line(&mut file, ticket, &batch);
        file.extend(batch);
    }
    fs::write(&path, &file).unwrap();
    assert_alike("batches", &both("redis-check-aof", &path));
    let third = file.len() / 3;
    let mut damaged = file.clone();
    let value = third + file[third..].windows(5).position(|five| five == b"value").unwrap();
    damaged[value] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let (ours, real) = both("redis-check-aof", &path);
    assert!(real.success && !ours.success);
    assert!(ours.has(&format!("ok_up_to={third},")), "{ours:?}");
    assert!(
        ours.has(&format!("complete batch or command follows at byte {}", 2 * third)),
        "{ours:?}"
    );
    assert!(ours.has("[info] 1 commands before byte"), "{ours:?}");
}

fn fixtures() -> Vec<PathBuf> {
    let directory = workspace_root().join("tests/fixtures/rdb");
    let directories = [directory.clone(), directory.join("old")];
    let entries = directories.iter().flat_map(|directory| fs::read_dir(directory).unwrap());
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "rdb"));
    paths.sort();
    assert!(paths.len() > 50);
    paths
}

/// Reports whether the real tool supports the version of the file.
fn known_to_redis_7_0(file: &[u8]) -> bool {
    file.starts_with(b"REDIS00") && (&b"01"[..]..=b"10").contains(&&file[7..9])
}

#[test]
fn snapshots_of_all_versions_get_the_same_output() {
    for path in fixtures() {
        let output = both("redis-check-rdb", &path);
        if !known_to_redis_7_0(&fs::read(&path).unwrap()) {
            assert!(
                output.0.success && output.1.has("Can't handle RDB format version"),
                "{output:?}"
            );
        } else if output.1.success {
            assert_alike(&path.display().to_string(), &output);
        } else {
            assert!(!output.0.success, "{output:?}");
        }
    }
}

#[test]
fn snapshots_cut_or_changed_anywhere_get_the_same_verdict() {
    let home = TempDir::new();
    let copy = home.path("dump.rdb");
    let mut tried = 0;
    for (number, path) in fixtures().into_iter().enumerate() {
        let whole = fs::read(&path).unwrap();
        // In module data, the real tool skips unknown parts.
        let modules = path.to_str().unwrap().contains("module");
        if !known_to_redis_7_0(&whole) || whole.len() > 100_000 || modules {
            continue;
        }
        let mut random = Random::derived(32, number as u64);
        for _ in 0..12 {
            let mut file = whole.clone();
            let at = random.below(file.len());
            if random.percent(40) {
                file.truncate(at);
            } else {
                file[at] ^= 1 << random.below(8);
            }
            // The real tool ignores characters in the version that are not digits.
            let digits =
                file.get(5..9).is_none_or(|version| version.iter().all(u8::is_ascii_digit));
            if !digits || (file.len() >= 9 && !known_to_redis_7_0(&file)) {
                continue;
            }
            fs::write(&copy, &file).unwrap();
            let (ours, real) = both("redis-check-rdb", &copy);
            let what = format!("{} of {} bytes, changed at {at}", path.display(), file.len());
            tried += 1;
            // If there is no checksum, the real tool accepts a score that only begins with a number.
            if ours.has("a score is not a number") && real.success {
                continue;
            }
            assert_eq!(ours.success, real.success, "{what}: {ours:?} {real:?}");
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn a_damaged_snapshot_is_reported_with_key_offset_and_intact_part() {
    let path = workspace_root().join("tests/fixtures/rdb/old/redis-assets-corrupt_ziplist.rdb");
    let (ours, real) = both("redis-check-rdb", &path);
    for text in ["Reading key 'key:000000000091'", "Reading type 13 (hash-ziplist)"] {
        assert!(ours.has(text) && real.has(text), "{ours:?}");
    }
    let read =
        |output: &ToolOutput| output.lines.iter().find(|line| line.ends_with("keys read")).cloned();
    assert_eq!(read(&ours), read(&real));
    assert!(ours.has("before it can be saved"), "{ours:?}");
}
