//! Changes values of all types, for several concurrent clients.

use brisk_testkit::Server;
use brisk_testkit::random::Random;

const LINES: &[&str] = &[
    "INCR counter:{n}",
    "APPEND text:{n} {c}x{i}",
    "SET plain:{n} {i}",
    "SET fleeting:{n} {i} EX 1000",
    "GETEX fleeting:{n} PERSIST",
    "RPUSH list:{n} {c}:{i} b",
    "LPOP list:{n}",
    "LMOVE list:{n} list:{m} LEFT RIGHT",
    "LTRIM list:{n} 0 20",
    "HSET hash:{n} f{i} {c} g{c} {i}",
    "HINCRBYFLOAT hash:{n} sum 0.25",
    "HDEL hash:{n} f1 f2 f3",
    "SADD set:{n} {i} m{c}",
    "SPOP set:{n}",
    "SMOVE set:{n} set:{m} {i}",
    "SUNIONSTORE union:{n} set:{n} set:{m}",
    "ZADD zset:{n} {i} m{c} {c} x{i}",
    "ZINCRBY zset:{n} 1.5 m{c}",
    "ZPOPMIN zset:{n}",
    "XADD stream:{n} MAXLEN ~ 50 * f {i}",
    "SETBIT bits:{n} {i} 1",
    "PFADD hll:{n} {c}:{i}",
    "GEOADD geo:{n} 13.{i} 38.{c} p{i}",
    "RENAME plain:{n} plain:{m}",
    "COPY text:{n} copy:{m} REPLACE",
    "DEL copy:{n}",
    "EXPIRE text:{n} 5000",
    "SORT list:{n} ALPHA STORE sorted:{n}",
];

/// Changes values as the client with this number, with single commands and in transactions. Continues while `goes_on`,
/// called with the number of changes made, returns true.
pub fn make(server: &Server, client: u64, mut goes_on: impl FnMut(u64) -> bool) {
    let mut conn = server.connect();
    let mut random = Random::derived(7, client);
    let mut i = 0;
    while goes_on(i) {
        let [n, m] = [0; 2].map(|_| random.below(5).to_string());
        let line = random.pick(LINES).replace("{n}", &n).replace("{m}", &m);
        let line = line.replace("{c}", &client.to_string());
        let line = line.replace("{i}", &(i % 90 + 10).to_string());
        if random.below(20) == 0 {
            conn.pipeline(&["MULTI", &line, "INCR transactions", "EXEC"]);
        } else {
            conn.cmd(&line);
        }
        i += 1;
    }
}
