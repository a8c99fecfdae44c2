//! The list of all commands by area, and the commands' entries in the book's table of contents.

use super::text::{MARK, anchor, cell, escaped};
use super::{commands, facts};
use brisk_engine::command::{Group, Origin};
use brisk_engine::table::{CommandTable, Row};
use std::fmt::Write as _;

/// The areas in the order of the page, with their headings.
const AREAS: &[(Group, &str)] = &[
    (Group::Generic, "Keys of any type"),
    (Group::String, "Strings"),
    (Group::Bitmap, "Bitmaps"),
    (Group::HyperLogLog, "HyperLogLog"),
    (Group::List, "Lists"),
    (Group::Hash, "Hashes"),
    (Group::Set, "Sets"),
    (Group::SortedSet, "Sorted sets"),
    (Group::Geo, "Geospatial indexes"),
    (Group::Stream, "Streams"),
    (Group::PubSub, "Pub/Sub"),
    (Group::Transactions, "Transactions"),
    (Group::Scripting, "Scripts and functions"),
    (Group::Connection, "Connections"),
    (Group::Server, "Server"),
    (Group::Cluster, "Cluster"),
];

const INTRODUCTION: &str = "\
# Command reference

Each command has a page with its syntax, complexity, keys, ACL categories, reply, and differences from Redis. A
container command, for example CLIENT, has one page with all its subcommands. COMMAND DOCS and COMMAND INFO return most
of these facts from a running server:

```text
COMMAND DOCS get
COMMAND INFO get
```

";

const LEGEND: &str = "
## Reading the pages

**Syntax.** Words in capital letters are typed as shown, in upper or lower case. Other words stand for values. `[x]` is
optional, `<x | y>` is a choice, and `x [x ...]` may be repeated.

**Since** shows the project that introduced the command (Redis, Valkey or Brisk) and the version in which it appeared.

**Complexity.** N and M are numbers of elements, keys or bytes, as the text explains.

**Reply.** If the types of RESP2 and RESP3 differ, a table shows both. A flat array alternates names and values, or
members and scores. Errors are not listed: every command replies with an error if its arguments are invalid, if a key
has a value of another type, or if the user lacks permission.

**Keys** shows which arguments are keys and how the command may use them. Access control, cluster routing and slot locks
apply to exactly these keys.

**Tips for clients** are hints for client libraries, in the form that COMMAND INFO returns. For example,
`request_policy:all_shards` marks a command that a cluster client should send to all primaries, and
`nondeterministic_output_order` marks a reply whose elements are in no particular order.

**Flags:**

| flag | meaning |
|---|---|
";

/// Returns the page.
pub(super) fn page(table: &CommandTable) -> String {
    let mut out = format!("{MARK}\n{INTRODUCTION}");
    for (_, title) in AREAS {
        _ = writeln!(out, "- [{title}](#{})", anchor(title));
    }
    out.push_str("- [Commands that only Brisk has](#commands-that-only-brisk-has)\n");
    out.push_str("- [Reading the pages](#reading-the-pages)\n");
    for (group, title) in AREAS {
        let rows = table.rows().iter().filter(|row| row.spec.group == *group);
        section(&mut out, title, rows.flat_map(parts));
    }
    let own = table.all().filter(|row| row.spec.origin == Origin::Brisk && !row.is_container());
    section(&mut out, "Commands that only Brisk has", own.filter(|row| row.spec.name != "help"));
    out.push_str(LEGEND);
    for (name, meaning) in facts::FLAGS {
        _ = writeln!(out, "| `{name}` | {meaning} |");
    }
    out
}

/// Returns a command and its subcommands without HELP.
fn parts(row: &Row) -> impl Iterator<Item = &Row> {
    let subcommands = row.subcommands.iter().filter(|row| row.spec.name != "help");
    std::iter::once(row).chain(subcommands)
}

/// Returns the entries of the command pages in the book's table of contents: the list of all
/// commands, and below it the pages by area.
pub(super) fn contents(table: &CommandTable) -> String {
    let mut out = "- [Commands](commands.md)\n".to_owned();
    for (group, title) in AREAS {
        _ = writeln!(out, "  - [{title}]()");
        for row in table.rows().iter().filter(|row| row.spec.group == *group) {
            _ = writeln!(out, "    - [{}]({})", commands::words(row), commands::link(row));
        }
    }
    out
}

fn section<'r>(out: &mut String, title: &str, rows: impl Iterator<Item = &'r Row>) {
    _ = write!(out, "\n## {title}\n\n| command | |\n|---|---|\n");
    for row in rows {
        let (words, link) = (commands::words(row), commands::link(row));
        let summary = cell(&escaped(row.spec.summary));
        _ = writeln!(out, "| [{words}]({link}) | {summary} |");
    }
}
