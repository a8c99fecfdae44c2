//! Checks that the target files and anchors of links between the pages of a directory exist.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages that mdBook derives from the other pages. Their links are those of the other pages, or relative to the site's
/// root.
const DERIVED: &[&str] = &["print.html", "404.html", "toc.html"];

/// The links and anchors of a page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

/// Returns a line for each broken link in the pages of a directory and its subdirectories.
pub(super) fn broken(directory: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    collect(directory, &mut files)?;
    let mut pages = BTreeMap::new();
    for file in &files {
        let path = file.strip_prefix(directory)?.to_owned();
        let is_derived = path.to_str().is_some_and(|path| DERIVED.contains(&path));
        if file.extension().is_some_and(|end| end == "html") && !is_derived {
            let html = fs::read_to_string(file).with_context(|| file.display().to_string())?;
            pages.insert(path, page_of(&html));
        }
    }
    let files: BTreeSet<PathBuf> = files
        .iter()
        .filter_map(|file| Some(file.strip_prefix(directory).ok()?.to_owned()))
        .collect();
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            if let Some(fault) = fault(path, link, &pages, &files) {
                findings.push(format!("{}: {link}: {fault}", path.display()));
            }
        }
    }
    Ok(findings)
}

/// Adds the files of a directory and its subdirectories.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(())
}

/// Returns the problem with a link on the page at `path`, if there is one.
fn fault(
    path: &Path,
    link: &str,
    pages: &BTreeMap<PathBuf, Page>,
    files: &BTreeSet<PathBuf>,
) -> Option<&'static str> {
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = target.split('?').next().unwrap_or(target);
    let file = if target.is_empty() {
        path.to_owned()
    } else {
        let Some(file) = resolved(path, &decoded(target)) else {
            return Some("outside of the book");
        };
        if target.ends_with('/') { file.join("index.html") } else { file }
    };
    if !files.contains(&file) {
        return Some("no such file");
    }
    let has_anchor = |page: &Page| page.anchors.contains(&decoded(anchor));
    match pages.get(&file) {
        Some(page) if !anchor.is_empty() && !has_anchor(page) => Some("no such anchor"),
        _ => None,
    }
}

/// Returns the path of a link's target, or `None` if the target is outside of the directory.
fn resolved(page: &Path, target: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_owned();
    for component in Path::new(target).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Replaces percent-encoded bytes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| first == b'%');
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Finds the links to other files, and the anchors.
fn page_of(html: &str) -> Page {
    let mut page = Page::default();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = match rest {
            comment if comment.starts_with("!--") => comment.find("-->"),
            tag => tag_end(tag),
        };
        let Some(end) = end else { break };
        let tag = &rest[..end];
        rest = &rest[end..];
        if tag.starts_with("script") || tag.starts_with("style") {
            let close = if tag.starts_with("script") { "</script" } else { "</style" };
            rest = rest.find(close).map_or("", |at| &rest[at..]);
        }
        if !tag.starts_with(['!', '/']) {
            attributes(tag, &mut page);
        }
    }
    page
}

/// Returns where a tag ends: the first `>` that is not in quotes.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (byte, quote) {
            (b'"' | b'\'', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            (b'>', None) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Adds the links and anchors in the attributes of a tag.
fn attributes(tag: &str, page: &mut Page) {
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once('=') {
        let name = before.rsplit(|c: char| c.is_ascii_whitespace()).next().unwrap_or(before);
        let after = after.trim_start();
        let (value, end) = match after.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let value = after[1..].split(quote).next().unwrap_or_default();
                (value, (value.len() + 2).min(after.len()))
            }
            _ => {
                let value = after.split_ascii_whitespace().next().unwrap_or_default();
                (value, value.len())
            }
        };
        let value = value.replace("&amp;", "&");
        match name {
            "id" | "name" => _ = page.anchors.insert(value),
            "href" | "src" if is_relative(&value) => page.links.push(value),
            _ => {}
        }
        rest = &after[end..];
    }
}

/// Reports whether a link leads to a page of the same site.
fn is_relative(link: &str) -> bool {
    let scheme = link.split(['/', '#', '?']).next().unwrap_or(link);
    !link.is_empty() && !scheme.contains(':') && !link.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_anchors_are_found_in_tags_only() {
        let html = "<a class=x href=\"a.html#b\">href=\"no\"</a><!-- <a href=\"no\"> --><h2 id='c'>\
                    <script>\"<a href='no'>\"</script><img src=i.png alt=\">\"><a href=\"https://x/y\">\
                    <a href=\"mailto:a@b\"><a href=\"#c\"><a href=\"d?e&amp;f\">";
        let page = page_of(html);
        assert_eq!(page.links, ["a.html#b", "i.png", "#c", "d?e&f"]);
        assert_eq!(page.anchors, BTreeSet::from(["c".to_owned()]));
    }

    #[test]
    fn a_link_needs_its_file_and_its_anchor() {
        let page = |anchors: &[&str]| Page {
            links: Vec::new(),
            anchors: anchors.iter().map(|&anchor| anchor.to_owned()).collect(),
        };
        let pages =
            BTreeMap::from([("a.html".into(), page(&["x y"])), ("d/b.html".into(), page(&["z"]))]);
        let files = BTreeSet::from(["a.html".into(), "d/b.html".into(), "i.png".into()]);
        let fault = |path: &str, link: &str| fault(Path::new(path), link, &pages, &files);
        for (path, link) in [
            ("a.html", "d/b.html#z"),
            ("a.html", "#x%20y"),
            ("a.html", "./i.png"),
            ("d/b.html", "../a.html?q#x%20y"),
        ] {
            assert_eq!(fault(path, link), None, "{path} {link}");
        }
        assert_eq!(fault("a.html", "b.html"), Some("no such file"));
        assert_eq!(fault("a.html", "#z"), Some("no such anchor"));
        assert_eq!(fault("a.html", "d/b.html#y"), Some("no such anchor"));
        assert_eq!(fault("d/b.html", "../../a.html"), Some("outside of the book"));
    }
}
