//! Converts options to measurements: the target, the cases, and a plan for each case.

use super::{Options, Sender};
use crate::cluster::Cluster;
use crate::engine::plan::{End, LibraryLoad, Pace, Plan, SessionSetup, Source, Target};
use crate::load::suite::{names, selected, test_named};
use crate::load::{Ingredient, Material, Workload};
use brisk_dial::address::Address;
use brisk_dial::tls::TlsClient;
use brisk_resp::{Limits, RequestDecoder, Spans, Step};
use std::io::Read;
use std::sync::Arc;

/// One case to measure: a workload at a pipeline depth.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its title without the pipeline depth.
    pub title: String,
    /// The requests. The workload's own title also contains the depth if there are several depths.
    pub workload: Arc<Workload>,
    /// Number of requests sent together.
    pub pipeline: usize,
}

/// The cases to measure, in order, and the names of unknown tests.
#[derive(Clone, Debug)]
pub struct Cases {
    /// The cases in order.
    pub cases: Vec<Case>,
    /// Names from `-t` that no test has.
    pub unknown_tests: Vec<String>,
}

impl Options {
    /// The server at the address that the options specify.
    ///
    /// # Errors
    /// If the host is unknown, or a file of the TLS options is missing.
    pub fn target(&self) -> Result<Target, String> {
        let address = match &self.socket {
            Some(path) => Address::Unix(path.clone()),
            None => Address::tcp(&self.host, self.port)
                .map_err(|error| format!("Could not connect to Redis at {error}"))?,
        };
        self.target_at(address)
    }

    /// A server at this address, with the session and TLS settings of the options.
    ///
    /// # Errors
    /// If a TLS file of the options is missing.
    pub fn target_at(&self, address: Address) -> Result<Target, String> {
        let tls = match &self.tls {
            Some(options) => Some(Arc::new(TlsClient::new(options)?)),
            None => None,
        };
        let session = SessionSetup {
            password: self.password.clone(),
            user: self.user.clone(),
            database: self.database,
            resp3: self.resp3,
            tracking: self.tracking,
        };
        Ok(Target { address, tls, session })
    }

    /// The settings that all requests have in common.
    #[must_use]
    pub fn material(&self) -> Material {
        Material {
            keys: self.keys,
            keyspace: self.keyspace,
            sizes: self.sizes.clone(),
            verified: self.verify,
            tagged: self.cluster,
        }
    }

    /// The cases to measure: all workloads, each at all depths.
    ///
    /// # Errors
    /// If a command or a mix is invalid.
    pub fn cases(&self) -> Result<Cases, String> {
        let (workloads, unknown_tests) = self.workloads()?;
        let mut cases = Vec::new();
        for workload in workloads {
            let title = workload.title.clone();
            let workload = Arc::new(workload);
            for &pipeline in &self.pipelines {
                let mut workload = Arc::clone(&workload);
                if self.pipelines.len() > 1 {
                    let title = format!("{title} P{pipeline}");
                    workload = Arc::new(Workload { title, ..Workload::clone(&workload) });
                }
                cases.push(Case { title: title.clone(), workload, pipeline });
            }
        }
        Ok(Cases { cases, unknown_tests })
    }

    fn workloads(&self) -> Result<(Vec<Workload>, Vec<String>), String> {
        let material = self.material();
        if !self.own.is_empty() {
            let mut words: Vec<Vec<u8>> =
                self.own.iter().map(|word| word.clone().into_bytes()).collect();
            if self.last_from_stdin {
                let mut last = Vec::new();
                std::io::stdin().read_to_end(&mut last).map_err(|error| error.to_string())?;
                words.push(last);
            }
            return Ok((vec![material.own(self.own.join(" "), &words)], Vec::new()));
        }
        if let [(text, _)] = self.commands.as_slice()
            && self.mix.is_none()
        {
            return Ok((vec![material.own(text.clone(), &words(text)?)], Vec::new()));
        }
        if self.mix.is_some() || !self.commands.is_empty() {
            return Ok((vec![self.mixture(&material)?], Vec::new()));
        }
        let (mut tests, unknown) = selected(self.tests.as_deref());
        if self.sender != Sender::Engine {
            tests.retain(|test| !test.words.is_empty());
            if tests.is_empty() && unknown.is_empty() {
                return Err("-t: the client library does not send inline requests".to_owned());
            }
        }
        if tests.is_empty() {
            let wanted = self.tests.as_deref().unwrap_or_default();
            return Err(format!("-t: there is no test \"{wanted}\"; the tests are {}", names()));
        }
        Ok((tests.into_iter().map(|test| material.test(test)).collect(), unknown))
    }

    fn mixture(&self, material: &Material) -> Result<Workload, String> {
        let (mut parts, mut titles) = (Vec::new(), Vec::new());
        for part in self.mix.iter().flat_map(|mix| mix.split(',')) {
            let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
            let test = test_named(name).ok_or_else(|| {
                format!("--mix: there is no test \"{name}\"; the tests are {}", names())
            })?;
            let weight: u32 =
                weight.parse().map_err(|_| format!("--mix: invalid weight: \"{weight}\""))?;
            parts.push((Ingredient::Test(test), u64::from(weight)));
            titles.push(format!("{name}:{weight}"));
        }
        for (text, weight) in &self.commands {
            parts.push((Ingredient::Own(words(text)?), *weight));
            titles.push(format!("{text}:{weight}"));
        }
        material.mix(format!("mix {}", titles.join(", ")), &parts)
    }

    /// The plan to run this case against this target.
    #[must_use]
    pub fn plan(&self, case: &Case, target: Target) -> Plan {
        Plan {
            workload: Arc::clone(&case.workload),
            target,
            cluster: None,
            clients: self.clients,
            threads: self.threads.max(1),
            pipeline: case.pipeline,
            keep_alive: self.keep_alive,
            pace: match self.rate {
                _ if self.idle => Pace::Idle,
                Some(rate) => Pace::Open { rate, arrivals: self.arrivals },
                None => Pace::Closed,
            },
            end: match self.duration {
                Some(duration) => End::After(duration),
                None => End::Requests(self.requests),
            },
            warmup: self.warmup,
            verify: self.verify,
            on_error: self.on_error,
            precision: self.precision,
            seed: self.seed,
            cpus: self.load_cpus.clone(),
            source: self.source(case.pipeline),
        }
        .bounded()
    }

    /// The plan to run this case against the primaries of a cluster. Without `--threads`, there is one thread for each
    /// primary, as in redis-benchmark.
    #[must_use]
    pub fn plan_of_cluster(&self, case: &Case, target: Target, cluster: Arc<Cluster>) -> Plan {
        let plan = self.plan(case, target);
        let nodes = cluster.nodes().len();
        let threads = if self.threads == 0 { nodes } else { plan.threads };
        Plan { clients: self.clients, threads, cluster: Some(cluster), ..plan }.bounded()
    }

    /// The sender of the requests. For the library, the number of callers is the number of pending requests that the
    /// engine would have.
    fn source(&self, pipeline: usize) -> Source {
        let is_pool = match self.sender {
            Sender::Engine => return Source::Engine,
            Sender::Library => false,
            Sender::LibraryPool => true,
        };
        let callers = self.clients.max(1).saturating_mul(pipeline);
        Source::Library(LibraryLoad { callers, is_pool, has_timeouts: true })
    }
}

/// The arguments of a command given as one text, with the quoting of inline commands.
fn words(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let line = format!("{text}\n");
    let mut spans = Spans::new();
    let limits = Limits { inline_bytes_max: line.len().max(16), ..Limits::default() };
    // The text is parsed as by a server. A text that begins like RESP is not a command.
    let read = RequestDecoder::new().decode(line.as_bytes(), &limits, &mut spans);
    match read {
        Ok(Step::Request { consumed, .. }) if consumed == line.len() && !text.starts_with('*') => {
            let bytes = |&span| spans.bytes(line.as_bytes(), span).to_vec();
            Ok(spans.as_slice().iter().map(bytes).collect())
        }
        _ => Err(format!("not a command: \"{text}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Request, parse};
    use super::*;

    fn titles(line: &[&str]) -> Vec<String> {
        let Ok(Request::Run(options)) = parse(line.iter().map(|&word| word.to_owned())) else {
            panic!("{line:?}")
        };
        let cases = options.cases().unwrap().cases;
        cases.iter().map(|case| case.workload.title.clone()).collect()
    }

    #[test]
    fn cases_are_workloads_at_depths() {
        assert_eq!(titles(&["-t", "set,get"]), ["SET", "GET"]);
        assert_eq!(titles(&["-t", "get", "-P", "1,16"]), ["GET P1", "GET P16"]);
        assert_eq!(titles(&["lpush", "l", "__data__"]), ["lpush l __data__"]);
        assert_eq!(titles(&["--mix", "get:9,set:1"]), ["mix get:9, set:1"]);
        let two = ["--command", "GET a", "--weight", "3", "--command", "SET a b"];
        assert_eq!(titles(&two), ["mix GET a:3, SET a b:1"]);
    }

    #[test]
    fn an_unknown_host_is_reported_like_an_unreachable_one() {
        let Ok(Request::Run(options)) = parse(["-h", "no host", "-p", "7"].map(str::to_owned))
        else {
            panic!("options of a run")
        };
        let error = options.target().unwrap_err();
        assert!(error.starts_with("Could not connect to Redis at no host:7: "), "{error}");
    }

    #[test]
    fn unknown_tests_are_reported_with_the_known_ones() {
        for line in [["-t", "nonsense"], ["-t", ""], ["--mix", "nonsense:1"]] {
            let Ok(Request::Run(options)) = parse(line.map(str::to_owned)) else {
                panic!("{line:?}")
            };
            let error = options.cases().unwrap_err();
            assert!(error.contains("no test") && error.contains("ping_inline, ping,"), "{error}");
        }
    }

    #[test]
    fn commands_in_one_text_have_the_quotes_of_inline_commands() {
        let read = |text| words(text).map(|words| words.join(&b'|'));
        assert!(read(r#"SET "a b" 'c''"#).is_err());
        assert_eq!(read(r#"SET "a b" 'c' \x"#).unwrap(), br"SET|a b|c|\x");
        assert!(read("").is_err() && read("*1").is_err() && read("PING\nPING").is_err());
    }
}
