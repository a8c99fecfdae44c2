//! The files of the console's page, which are part of the program.

/// A file.
pub(super) struct Asset {
    /// The path by which browsers request it.
    path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The assets of files in the directory `page`, by name and type.
macro_rules! assets {
    ($($name:literal: $content_type:expr,)*) => {
        &[$(Asset {
            path: concat!("/console/", $name),
            content_type: $content_type,
            body: include_str!(concat!("page/", $name)),
        }),*]
    };
}

const ASSETS: &[Asset] = assets! {
    "index.html": "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "bytes.js": SCRIPT,
    "clients.js": SCRIPT,
    "collection.js": SCRIPT,
    "commands.js": SCRIPT,
    "commandstats.js": SCRIPT,
    "dialog.js": SCRIPT,
    "docs.js": SCRIPT,
    "dom.js": SCRIPT,
    "format.js": SCRIPT,
    "guarded.js": SCRIPT,
    "health.js": SCRIPT,
    "hotkeys.js": SCRIPT,
    "key.js": SCRIPT,
    "keys.js": SCRIPT,
    "keyspec.js": SCRIPT,
    "latency.js": SCRIPT,
    "latencyview.js": SCRIPT,
    "login.js": SCRIPT,
    "main.js": SCRIPT,
    "memory.js": SCRIPT,
    "nodes.js": SCRIPT,
    "overview.js": SCRIPT,
    "patterns.js": SCRIPT,
    "pause.js": SCRIPT,
    "persistence.js": SCRIPT,
    "plot.js": SCRIPT,
    "prompt.js": SCRIPT,
    "replytext.js": SCRIPT,
    "resp.js": SCRIPT,
    "session.js": SCRIPT,
    "slowlog.js": SCRIPT,
    "store.js": SCRIPT,
    "stringview.js": SCRIPT,
    "table.js": SCRIPT,
    "tabs.js": SCRIPT,
    "timer.js": SCRIPT,
    "types.js": SCRIPT,
    "value.js": SCRIPT,
};

/// Returns the file with this path. `/` is the page itself.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    let path = if path == "/" { "/console/index.html" } else { path };
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/console/page");
        let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        let mut served: Vec<&str> =
            ASSETS.iter().filter_map(|asset| asset.path.strip_prefix("/console/")).collect();
        names.sort_unstable();
        served.sort_unstable();
        assert_eq!(served, names);
    }

    #[test]
    fn the_page_has_no_inline_code_and_no_foreign_addresses() {
        for asset in ASSETS {
            for forbidden in ["innerHTML", "eval(", "<script>", "onclick=", " style=", "https://"] {
                assert!(!asset.body.contains(forbidden), "{}: {forbidden}", asset.path);
            }
        }
    }
}
