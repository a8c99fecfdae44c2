//! `--eval`: runs a script from a file, with keys before a comma and arguments after it. Also runs the script debugger.

use crate::format::Output;
use crate::link::plain;
use crate::options::Debugging;
use crate::repl::{self, End};
use crate::screen;
use crate::session::{Debug, Loudness, Session};
use std::path::Path;

const INTRODUCTION: &str = "Lua debugging session started, please use:\n\
    quit    -- End the session.\n\
    restart -- Restart the script in debug mode again.\n\
    help    -- Show Lua script debugging commands.\n\n";

pub(super) fn run(session: &mut Session) -> i32 {
    let Some(path) = session.options.script.clone() else { return 1 };
    if session.connect(Loudness::Loud).is_err() {
        return 1;
    }
    loop {
        let Some(words) = request(&path, &session.options.words) else { return 1 };
        let Some(debugging) = session.options.debugging else {
            return i32::from(session.issue(&words, 1).is_err());
        };
        screen::print(INTRODUCTION);
        let sub = match debugging {
            Debugging::Synchronous => "sync",
            Debugging::Forked => "yes",
        };
        match session.request(&["SCRIPT", "DEBUG", sub]) {
            Ok(reply) => {
                if let Some(text) = reply.as_error() {
                    let text = String::from_utf8_lossy(text);
                    screen::warn(format!("This server has no script debugger: {text}\n"));
                    return 1;
                }
            }
            Err(error) => return super::lost(&error),
        }
        session.debug = Debug::Running;
        session.options.output = Output::Raw;
        let failed = session.issue(&words, 1).is_err();
        if session.debug != Debug::Running {
            // The script could not be started. Its error follows.
            session.debug = Debug::Off;
            session.options.output = Output::Standard;
            screen::print("Eval debugging session can't start:\n");
            let _ = session.show_next();
            return i32::from(failed);
        }
        if repl::run(session) == End::Quit {
            return 0;
        }
        if session.connect(Loudness::Loud).is_err() {
            return 1;
        }
        screen::print("\n");
    }
}

/// EVAL with the text of the file.
fn request(path: &Path, words: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let script = match std::fs::read(path) {
        Ok(script) => script,
        Err(error) => {
            screen::warn(format!("Can't open file '{}': {}\n", path.display(), plain(&error)));
            return None;
        }
    };
    let is_comma = |word: &Vec<u8>| word == b",";
    let keys = words.iter().position(is_comma).unwrap_or(words.len());
    let mut request = vec![b"EVAL".to_vec(), script, keys.to_string().into_bytes()];
    request.extend_from_slice(&words[..keys]);
    request.extend(words.iter().skip(keys + 1).cloned());
    Some(request)
}
