//! The page of the metrics.

use super::text::{MARK, cell, code_list, escaped};
use brisk_server::http::metrics::{self, Metric};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Metrics reference

The server exports metrics for Prometheus over HTTP if [`http-port`](configuration.md#http-port) is set:

```text
brisk-server --http-port 9121
curl http://127.0.0.1:9121/metrics
```

The format is the Prometheus text format 0.0.4, or OpenMetrics 1.0 if the request prefers it. In OpenMetrics, the
`# TYPE` line of a counter omits the suffix `_total`.

- Metrics named `redis_…` have the meanings and, with few exceptions, the names of the widely used exporter for Redis,
  so its dashboards work. Metrics named `brisk_…` are Brisk's own.
- Most metrics are fields of INFO. Durations and times are in seconds and sizes are in bytes, regardless of the unit of
  the field; metrics whose name ends with `_usec` are in microseconds.
- A metric is omitted while the server has no data for it: for example, metrics about a primary exist only on a replica.
- A metric of type unknown grows like a counter, but its established name lacks the suffix `_total`.

";

/// Returns the page.
pub(super) fn page() -> String {
    let mut out = format!("{MARK}\n{INTRODUCTION}");
    let (fields, labeled): (Vec<Metric>, Vec<Metric>) =
        metrics::all().partition(|metric| metric.field.is_some());
    out.push_str("## Metrics with labels and from other sources\n\n");
    out.push_str("| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n");
    for metric in labeled {
        let labels = code_list(metric.labels.iter().copied());
        let Metric { name, kind, help, .. } = metric;
        _ = writeln!(out, "| `{name}` | {kind} | {labels} | {} | {} |", unit(name), meaning(help));
    }
    out.push_str("\n## Fields of INFO\n\n");
    out.push_str("| metric | type | field of INFO | unit | meaning |\n|---|---|---|---|---|\n");
    for metric in fields {
        let Metric { name, kind, help, field, .. } = metric;
        let (field, help) = (field.unwrap_or_default(), meaning(help));
        _ = writeln!(out, "| `{name}` | {kind} | `{field}` | {} | {help} |", unit(name));
    }
    out
}

fn meaning(help: &str) -> String {
    cell(&escaped(help))
}

/// Returns the unit, which is the end of a metric's name.
fn unit(name: &str) -> &'static str {
    let name = name.trim_end_matches("_total");
    let units = [
        ("_seconds", "seconds"),
        ("_timestamp_seconds", "Unix time in seconds"),
        ("_seconds_ago", "seconds"),
        ("_bytes", "bytes"),
        ("_usec", "microseconds"),
        ("_ratio", "ratio"),
        ("_percent", "percent"),
    ];
    let fits = units.iter().filter(|(end, _)| name.ends_with(end));
    fits.max_by_key(|(end, _)| end.len()).map_or("", |(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::Launch;
    use brisk_testkit::port::Port;
    use std::io::{Read, Write as _};
    use std::net::TcpStream;

    #[test]
    fn every_metric_of_a_server_is_on_the_page() {
        let port = Port::claim();
        let server = Launch::subject().set("http-port", &port.number().to_string()).start();
        let mut conn = server.connect();
        conn.cmd("SLOWLOG RESET");
        conn.cmd("CONFIG SET slowlog-log-slower-than 0 latency-monitor-threshold 1");
        conn.cmd("DEBUG SLEEP 0.01");
        conn.cmd("NOSUCH");
        let mut http = TcpStream::connect(("127.0.0.1", port.number())).unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        http.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        http.read_to_string(&mut response).unwrap();
        let page = page();
        let types = response.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let names: Vec<&str> = types.filter_map(|line| line.split(' ').next()).collect();
        assert!(names.len() > 100, "{response}");
        for name in names {
            assert!(page.contains(&format!("| `{name}` |")), "{name} is not on the page");
        }
    }
}
