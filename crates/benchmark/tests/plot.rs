//! The plots in the documentation are those that the program draws from the data next to them.

use brisk_testkit::server::Launch;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_brisk-benchmark");
/// Maximum size of the plot, which browsers load with the README.
const SVG_BYTES_MAX: usize = 40 << 10;

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plots").join(name)
}

#[test]
fn plots_of_the_documentation_are_up_to_date() {
    let (results, committed) = (document("cpu.json"), document("cpu.svg"));
    let drawn = std::env::temp_dir().join(format!("plot-{}.svg", std::process::id()));
    let output = Command::new(PROGRAM).arg("plot").args([&results, &drawn]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = fs::read_to_string(&drawn).unwrap();
    fs::remove_file(&drawn).unwrap();
    assert!(
        fs::read_to_string(&committed).ok().as_ref() == Some(&svg),
        "docs/plots/cpu.svg is not the plot of docs/plots/cpu.json. Draw it again: \
         brisk-benchmark plot docs/plots/cpu.json docs/plots/cpu.svg"
    );
    assert!(svg.len() <= SVG_BYTES_MAX, "{} bytes", svg.len());
}

#[test]
fn data_of_the_documentation_name_no_directory_and_no_address() {
    let json = fs::read_to_string(document("cpu.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    for server in json["servers"].as_array().unwrap() {
        assert!(!server["place"].as_str().unwrap().contains('/'), "{server}");
    }
    assert!(!json["command"].as_str().unwrap().contains(" /"), "{}", json["command"]);
    assert_eq!(json["cases"][0].get("samples"), None);
}

#[test]
fn a_file_that_is_no_comparison_is_reported() {
    let output =
        Command::new(PROGRAM).args(["plot", "Cargo.toml", "/no/where.svg"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("Cargo.toml: not the JSON of a comparison"), "{error}");
}

#[test]
fn results_that_are_to_be_published_have_no_addresses_and_can_be_drawn() {
    let (one, other) = (Launch::redis().start(), Launch::subject().start());
    let dir = std::env::temp_dir().join(format!("published-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    let [json, svg] = ["results.json", "plot.svg"].map(|name| dir.join(name).display().to_string());
    let servers = [format!("one={}", one.address()), other.address().to_string()];
    let output = Command::new(PROGRAM)
        .arg("compare")
        .args(&servers)
        .args([
            "-t", "get", "-P", "1,16", "-n", "500", "--rounds", "1", "--public", "--save", &json,
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&json).unwrap();
    for private in
        [&one.address().to_string(), &other.address().to_string(), &*dir.to_string_lossy()]
    {
        assert!(!text.contains(private), "{private}: {text}");
    }
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        results["command"],
        "brisk-benchmark compare one=ADDRESS ADDRESS -t get -P 1,16 -n 500 --rounds 1 --public --save results.json"
    );
    assert_eq!(results["servers"][1]["name"], "server 2");
    assert_eq!(results["date"].as_str().unwrap().len(), "2026-01-31".len());

    let output = Command::new(PROGRAM).args(["plot", &json, &svg]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let drawn = fs::read_to_string(&svg).unwrap();
    assert!(drawn.contains(">Redis 7.0.15</text>") && drawn.contains(">GET</text>"), "{drawn}");
    fs::remove_dir_all(dir).unwrap();
}
