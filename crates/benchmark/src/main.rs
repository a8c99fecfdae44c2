//! `brisk-benchmark`: reads the command line, runs the tests, and prints the results.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the results are the output of the program")]

use brisk_benchmark::cluster::Cluster;
use brisk_benchmark::compare::ServerInfo;
use brisk_benchmark::delay::{DelayPlan, DelayProxy};
use brisk_benchmark::engine::Progress;
use brisk_benchmark::engine::plan::{Pace, Plan, Target};
use brisk_benchmark::experiments::finding::Finding;
use brisk_benchmark::experiments::{self, EXPERIMENTS};
use brisk_benchmark::html::{Report, svg};
use brisk_benchmark::options::experiments::ExperimentOptions;
use brisk_benchmark::options::help::HELP;
use brisk_benchmark::options::{Format, Options, PlotFiles, Request, parse};
use brisk_benchmark::report::{self, HostConfiguration};
use brisk_benchmark::requester::Requester;
use brisk_benchmark::{RunError, Subject, Watch, compare, run};
use monitor::{Monitored, RunMonitor};
use std::fs::{self, File};
use std::io::{IsTerminal, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

mod monitor;

fn main() -> ExitCode {
    let done = match parse(std::env::args().skip(1)) {
        Ok(Request::Help) => {
            print!("{HELP}");
            Ok(())
        }
        Ok(Request::Version) => {
            println!("brisk-benchmark {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Ok(Request::Run(options)) => measure(&options),
        Ok(Request::Compare(options)) => side_by_side(&options),
        Ok(Request::Experiments(options)) => experiment(&options),
        Ok(Request::DelayProxy(plan)) => delay(plan),
        Ok(Request::Plot(files)) => plot(&files),
        Err(error) => Err(format!("{error}\n`brisk-benchmark --help` lists all options.")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures one server, test by test.
fn measure(options: &Options) -> Result<(), String> {
    warn(options);
    let cases = options.cases()?;
    let target = options.target()?;
    let cluster = discovered(options, &target)?;
    let targets = targets(&target, cluster.as_deref());
    let hosts = targets.iter().map(|target| host_configuration(target));
    let hosts = hosts.collect::<Result<Vec<_>, String>>()?;
    for name in &cases.unknown_tests {
        eprintln!("WARNING: there is no test \"{name}\".");
    }
    if options.fill {
        for (at, target) in targets.iter().enumerate() {
            let tag = cluster.as_ref().map(|cluster| cluster.nodes()[at].tag());
            let subject = Subject::at("server", (*target).clone())?;
            subject.fill(&options.material(), options.seed, tag.unwrap_or_default())?;
        }
    }
    if options.idle {
        return idle(options, &target, cluster.as_ref());
    }
    if options.format == Format::Csv {
        println!("{}", report::CSV_HEAD);
    }
    let machine = Monitored::of(&targets);
    loop {
        for case in &cases.cases {
            let plan = match &cluster {
                Some(cluster) => options.plan_of_cluster(case, target.clone(), Arc::clone(cluster)),
                None => options.plan(case, target.clone()),
            };
            one_run(options, &plan, &hosts, &machine).map_err(|error| match &*cases.cases {
                [_] => error.to_string(),
                _ => format!("{error} (while measuring {})", plan.workload.title),
            })?;
        }
        if matches!(options.format, Format::Long | Format::Quiet) && options.own.is_empty() {
            println!();
        }
        if !options.again {
            return Ok(());
        }
    }
}

/// The cluster of `--cluster`. Its description is printed to standard output, or to standard error if the results are
/// data.
fn discovered(options: &Options, target: &Target) -> Result<Option<Arc<Cluster>>, String> {
    if !options.cluster {
        return Ok(None);
    }
    let cluster = Cluster::discover(target).map_err(|error| error.to_string())?;
    let described = report::cluster(&cluster);
    match options.format {
        Format::Csv | Format::Json => eprint!("{described}"),
        Format::Long | Format::Quiet | Format::Markdown => print!("{described}"),
    }
    if let Some(warning) = cluster.warning() {
        eprintln!("WARNING: {warning}");
    }
    if options.clients < cluster.nodes().len() {
        let nodes = cluster.nodes().len();
        eprintln!(
            "WARNING: -c {} was raised to {nodes}, one connection per primary.",
            options.clients
        );
    }
    Ok(Some(Arc::new(cluster)))
}

/// The servers to which requests are sent.
fn targets<'a>(target: &'a Target, cluster: Option<&'a Cluster>) -> Vec<&'a Target> {
    match cluster {
        Some(cluster) => cluster.nodes().iter().map(|node| &node.target).collect(),
        None => vec![target],
    }
}

fn one_run(
    options: &Options,
    plan: &Plan,
    hosts: &[Option<HostConfiguration>],
    machine: &Monitored,
) -> Result<(), RunError> {
    let shown = options.format == Format::Long || options.format == Format::Quiet;
    let mut monitor = RunMonitor::new(&plan.workload.title, shown, machine.clone());
    let outcome = run(plan, &mut monitor);
    monitor.clear();
    let mut outcome = outcome?;
    outcome.notes.extend(monitor.noise());
    match options.format {
        Format::Long | Format::Markdown => {
            print!("{}", report::long(&outcome, plan, options.threads, hosts));
            println!();
        }
        Format::Quiet => {
            println!("{}", report::quiet(&outcome));
            print!("{}", report::quiet_nodes(&outcome));
        }
        Format::Csv => println!("{}", report::csv(&outcome)),
        Format::Json => println!("{}", report::json(&outcome)),
    }
    // Flush before anything is written to standard error.
    let _ = stdout().flush();
    // The long report has already contained this, if it went to a terminal.
    let seen = options.format == Format::Long && stdout().is_terminal();
    if options.format == Format::Quiet || (outcome.generator.limit.is_some() && !seen) {
        eprintln!("  {}", report::generator(&outcome).replace('\n', "\n  "));
    }
    if let Some(faults) = report::faults(&outcome) {
        eprintln!("  {}", faults.replace('\n', "\n  "));
    }
    if outcome.mismatches > 0 {
        return Err(RunError::Plan("the replies were not as expected".to_owned()));
    }
    Ok(())
}

/// Opens connections and keeps them open until the user stops the program.
fn idle(options: &Options, target: &Target, cluster: Option<&Arc<Cluster>>) -> Result<(), String> {
    println!(
        "Creating {} idle connections and waiting forever (Ctrl+C when done)",
        options.clients
    );
    let material = options.material();
    let plan = Plan {
        pace: Pace::Idle,
        clients: options.clients,
        threads: options.threads.max(1),
        cluster: cluster.map(Arc::clone),
        ..Plan::new(material.own("idle".to_owned(), &["PING"]), target.clone())
    };
    struct Clients;
    impl Watch for Clients {
        fn progress(&mut self, progress: &Progress) {
            print!("clients: {}\r", progress.connected);
            let _ = stdout().flush();
        }
    }
    run(&plan, &mut Clients).map(drop).map_err(|error| error.to_string())
}

fn side_by_side(options: &Options) -> Result<(), String> {
    warn(options);
    for path in &options.save {
        compare::render::format_of(path)?;
    }
    check_writable(options.save.iter().chain(&options.html))?;
    let shown = std::io::stderr().is_terminal();
    let mut notify = |text: &str| {
        if shown {
            eprint!("\r\x1b[K{text}");
            let _ = std::io::stderr().flush();
        }
    };
    let comparison = compare::compare(options, &mut notify);
    notify("");
    let comparison = comparison?;
    print!("{}", compare::render::render(&comparison, options.format));
    for warning in &comparison.warnings {
        eprintln!("WARNING: {warning}");
    }
    for path in &options.save {
        compare::render::save(&comparison, path)?;
    }
    match &options.html {
        Some(path) => Report::of(comparison).save(path),
        None => Ok(()),
    }
}

/// Runs experiments, and prints the result of each when it is done.
fn experiment(options: &ExperimentOptions) -> Result<(), String> {
    if options.list {
        for one in EXPERIMENTS {
            println!("{}  {}\n    {}", one.name, one.title, one.what);
        }
        return Ok(());
    }
    let shown = std::io::stderr().is_terminal();
    let mut notify = |text: &str| {
        if shown {
            eprint!("\r\x1b[K{text}");
            let _ = std::io::stderr().flush();
        }
    };
    let mut found = |finding: &Finding, servers: &[ServerInfo]| {
        if shown {
            eprint!("\r\x1b[K");
        }
        println!("{}", experiments::render::table(finding, servers));
        let _ = stdout().flush();
    };
    check_writable([&options.json, &options.html, &options.markdown].into_iter().flatten())?;
    let report = experiments::experiments(options, &mut notify, &mut found);
    notify("");
    let report = report?;
    for warning in &report.warnings {
        eprintln!("WARNING: {warning}");
    }
    let write = |path: &Option<PathBuf>, text: fn(&Report) -> String| match path {
        Some(path) => std::fs::write(path, text(&report))
            .map_err(|error| format!("{}: {error}", path.display())),
        None => Ok(()),
    };
    write(&options.json, experiments::render::json)?;
    write(&options.markdown, experiments::render::markdown)?;
    write(&options.html, Report::html)?;
    match report.failed() {
        0 => Ok(()),
        failed => Err(format!("{failed} experiments failed")),
    }
}

/// Checks before a long measurement whether its results can be written to these files. Existing files keep their
/// contents, and links stay, even dangling ones.
fn check_writable<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Result<(), String> {
    for path in paths {
        let is_new = !path.exists();
        File::options()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        // Remove the new empty file, which would look like a result. If the path is a link, the file is at its target.
        if is_new && let Ok(made) = path.canonicalize() {
            let _ = fs::remove_file(made);
        }
    }
    Ok(())
}

/// Draws the results of a comparison.
fn plot(files: &PlotFiles) -> Result<(), String> {
    let comparison = compare::render::load(&files.results)?;
    let svg = svg::cpu_over_depth(&comparison)
        .map_err(|error| format!("{}: {error}", files.results.display()))?;
    fs::write(&files.svg, svg).map_err(|error| format!("{}: {error}", files.svg.display()))
}

/// Runs the delay proxy until the user stops it.
fn delay(plan: DelayPlan) -> Result<(), String> {
    let proxy = DelayProxy::start(plan).map_err(|error| error.to_string())?;
    println!(
        "{} to {}, delay {:?} in each direction (Ctrl+C when done)",
        proxy.address(),
        plan.to,
        plan.delay
    );
    let _ = stdout().flush();
    proxy.wait().map_err(|error| error.to_string())
}

fn warn(options: &Options) {
    for warning in &options.warnings {
        eprintln!("{warning}");
    }
}

/// The server's settings for the long report.
fn host_configuration(target: &Target) -> Result<Option<HostConfiguration>, String> {
    let settings = Requester::connect(target).and_then(|mut requester| {
        Ok(match (requester.setting("save")?, requester.setting("appendonly")?) {
            (Some(save), Some(append_only)) => Some(HostConfiguration { save, append_only }),
            _ => None,
        })
    });
    match settings {
        Ok(Some(host)) => Ok(Some(host)),
        Ok(None) => {
            eprintln!("WARNING: Could not fetch server CONFIG");
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn checking_whether_files_are_writable_changes_none() {
        let dir = std::env::temp_dir().join(format!("writable-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let [kept, new, missing] = ["kept", "new", "missing"].map(|name| dir.join(name));
        let [to_kept, to_missing] = ["to_kept", "to_missing"].map(|name| dir.join(name));
        fs::write(&kept, "results").unwrap();
        symlink(&kept, &to_kept).unwrap();
        symlink("missing", &to_missing).unwrap();

        check_writable([&kept, &new, &to_kept, &to_missing].into_iter()).unwrap();
        assert_eq!(fs::read_to_string(&to_kept).unwrap(), "results");
        assert!(!new.exists() && !missing.exists());
        assert_eq!(fs::read_link(&to_missing).unwrap(), PathBuf::from("missing"));

        let nowhere = dir.join("no/where");
        assert!(check_writable([&nowhere].into_iter()).unwrap_err().contains("No such file"));
        fs::remove_dir_all(dir).unwrap();
    }
}
