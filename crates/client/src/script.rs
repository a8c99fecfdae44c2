//! Scripts by digest: the client sends the source to a server once, then only the digest.

use crate::arg::ToArgs;
use crate::client::Client;
use crate::error::{Code, Result};
use crate::reply::FromReply;
use crate::request::{Request, Traits};
use std::sync::OnceLock;

/// A Lua script: its source and its SHA-1 digest.
///
/// ```no_run
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// static ADD: brisk::Script = brisk::Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
/// let sum: i64 = ADD.run(&db, ["n"], [5]).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Script {
    source: &'static str,
    digest: OnceLock<String>,
    traits: Traits,
}

impl Script {
    /// Returns a script with this source.
    #[must_use]
    pub const fn new(source: &'static str) -> Script {
        let traits = Traits { reads_only: false, blocks: false, binds: false };
        Script { source, digest: OnceLock::new(), traits }
    }

    /// Returns a script that does not change data, so the client may send it again after a lost connection.
    #[must_use]
    pub const fn read_only(source: &'static str) -> Script {
        let traits = Traits { reads_only: true, blocks: false, binds: false };
        Script { source, digest: OnceLock::new(), traits }
    }

    /// Runs the script. The first run loads the source with SCRIPT LOAD. Later runs send only the digest (EVALSHA); if
    /// the server no longer has the script, the client sends the source again (EVAL).
    ///
    /// # Errors
    /// The server's error, including errors that the script raises.
    pub async fn run<T: FromReply>(
        &self,
        client: &Client,
        keys: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T> {
        let digest = match self.digest.get() {
            Some(digest) => digest,
            None => {
                let digest: String = client.raw("SCRIPT LOAD").arg(self.source).await?;
                self.digest.get_or_init(|| digest)
            }
        };
        let command = |name: &str, script: &str| {
            let mut request = Request::new(name, self.traits);
            request.arg(script);
            request.arg(keys.count());
            request.keys(&keys);
            request.args(&args);
            crate::command::Command::<(), T>::new(request).on(client)
        };
        match command("EVALSHA", digest).await {
            Err(error) if error.code() == Some(Code::NoScript) => {
                command("EVAL", self.source).await
            }
            done => done,
        }
    }
}
