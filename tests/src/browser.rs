//! A headless Chromium with one page, which a test drives over the DevTools protocol.
//!
//! Expressions are JavaScript and run in the page. They may use these functions:
//!
//! | function | result |
//! |---|---|
//! | `visible(selector)` | the visible elements that match, as an array |
//! | `find(selector, text)` | the first visible element that matches, and whose text is equal to `text` if that is given |
//! | `shows(selector, text)` | true if a visible element matches and contains the text |
//! | `count(selector)` | the number of visible elements that match |

use crate::websocket::{TEXT, WebSocket, handshake};
use brisk_structures::base64;
use brisk_testkit::wait::{DEADLINE, holds_within};
use brisk_testkit::{TempDir, skipped};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The functions for expressions.
const FUNCTIONS: &str = "
    const visible = (selector) =>
        [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
    const find = (selector, text) => visible(selector)
        .find((element) => text === undefined || element.textContent.trim() === text);
    const shows = (selector, text) =>
        visible(selector).some((element) => element.textContent.includes(text));
    const count = (selector) => visible(selector).length;
";

/// How long one evaluation waits in the page for a condition.
const CHECK_MS: u32 = 250;

/// Modifier keys in an event of the DevTools protocol.
const CONTROL: u32 = 2;

/// A browser, its process, and its page.
#[derive(Debug)]
pub struct Browser {
    socket: WebSocket,
    /// The DevTools session of the page, once there is one.
    session: Option<String>,
    /// The number of sent requests, which is the identifier of the last one.
    sent: u64,
    problems: Vec<String>,
    /// Ends when the value is dropped.
    _process: BrowserProcess,
}

/// The process, which runs in a process group of its own, and its temporary files.
#[derive(Debug)]
struct BrowserProcess {
    child: Child,
    directory: TempDir,
}

impl Browser {
    /// Starts a browser with an empty page. If this machine has no Chromium, prints a line for the gate and returns
    /// `None`.
    #[track_caller]
    pub fn start() -> Option<Browser> {
        let Some(program) = program() else {
            skipped("no chromium on this machine");
            return None;
        };
        let mut process = BrowserProcess::spawn(&program);
        let (port, path) = process.wait_for_address();
        let headers = handshake("127.0.0.1", "http://127.0.0.1", "devtools");
        let socket = WebSocket::connect_to(port, &path, &headers).expect("DevTools opens");
        let mut browser =
            Browser { socket, session: None, sent: 0, problems: Vec::new(), _process: process };
        let page = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attached);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.set_viewport(1280, 800, false);
        Some(browser)
    }

    /// Opens an address and waits until its document has loaded.
    #[track_caller]
    pub fn navigate(&mut self, url: &str) {
        let result = self.call("Page.navigate", &json!({ "url": url }));
        assert_eq!(result.get("errorText"), None, "cannot open {url}");
        self.wait_for(&format!(
            "document.readyState === 'complete' && location.href.startsWith({})",
            json!(url)
        ));
    }

    /// The value of an expression; a promise is awaited.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        match self.try_evaluate(expression) {
            Ok(value) => value,
            Err(error) => panic!("{error} in the expression {expression}"),
        }
    }

    /// The text of the first visible element that matches.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.evaluate(&format!("find({})?.textContent", json!(selector)));
        text.as_str().unwrap_or_else(|| panic!("no element matches {selector}")).to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait_for(&mut self, condition: &str) {
        let expression = format!(
            "new Promise((resolve, reject) => {{
                const end = performance.now() + {CHECK_MS};
                const check = () => {{
                    try {{
                        const holds = Boolean({condition});
                        if (holds || performance.now() > end) resolve(holds);
                        else setTimeout(check, 10);
                    }} catch (error) {{
                        reject(error);
                    }}
                }};
                check();
            }})"
        );
        // An evaluation fails if the page is replaced by another one.
        let mut last = Ok(Value::Null);
        let holds = holds_within(DEADLINE, || {
            last = self.try_evaluate(&expression);
            last == Ok(Value::Bool(true))
        });
        if !holds {
            self.give_up(&format!("waited {DEADLINE:?} in vain for: {condition}: {last:?}"));
        }
    }

    /// Clicks on the center of a visible element, once it is there, has stopped moving, and is not covered by another
    /// one. With a text, it is the element with exactly this text.
    #[track_caller]
    pub fn click(&mut self, selector: &str, text: Option<&str>) {
        let text = text.map_or_else(|| "undefined".to_owned(), |text| json!(text).to_string());
        let element = format!("find({}, {text})", json!(selector));
        self.wait_for(&format!("{element} && !{element}.disabled"));
        let mut point = Value::Null;
        let is_clickable = holds_within(DEADLINE, || {
            point = self.evaluate(&format!(
                "(async () => {{
                    const element = {element};
                    if (!element) return null;
                    element.scrollIntoView({{ block: 'center', inline: 'center' }});
                    const center = () => {{
                        const {{ x, y, width, height }} = element.getBoundingClientRect();
                        return [x + width / 2, y + height / 2];
                    }};
                    const before = center();
                    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
                    const now = center();
                    const isStill = before[0] === now[0] && before[1] === now[1];
                    return isStill && element.contains(document.elementFromPoint(...now)) ? now : null;
                }})()"
            ));
            point.is_array()
        });
        if !is_clickable {
            self.give_up(&format!("the element {element} is covered or moves"));
        }
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({
                "type": kind, "x": point[0], "y": point[1], "button": button, "buttons": buttons, "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Types characters into the element that has the focus.
    #[track_caller]
    pub fn type_text(&mut self, text: &str) {
        for character in text.chars() {
            let character = character.to_string();
            let event = json!({ "type": "keyDown", "key": character, "text": character });
            self.call("Input.dispatchKeyEvent", &event);
            self.call("Input.dispatchKeyEvent", &json!({ "type": "keyUp", "key": character }));
        }
    }

    /// Clicks on a text field and replaces its text.
    #[track_caller]
    pub fn fill(&mut self, selector: &str, text: &str) {
        self.click(selector, None);
        let event = json!({
            "type": "keyDown", "key": "a", "modifiers": CONTROL, "windowsVirtualKeyCode": 65,
            "commands": ["selectAll"],
        });
        self.call("Input.dispatchKeyEvent", &event);
        self.press("Delete");
        self.type_text(text);
    }

    /// Presses and releases a key without a character, or Enter.
    #[track_caller]
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowUp" => 38,
            "ArrowDown" => 40,
            "Delete" => 46,
            _ => panic!("the code of the key {key} is not listed here"),
        };
        let mut event = json!({
            "type": "rawKeyDown", "key": key, "code": key, "windowsVirtualKeyCode": code,
        });
        if key == "Enter" {
            event["type"] = json!("keyDown");
            event["text"] = json!("\r");
        }
        self.call("Input.dispatchKeyEvent", &event);
        event["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", &event);
    }

    /// Chooses an option of a `select` element by its value, once the element is there.
    #[track_caller]
    pub fn choose(&mut self, selector: &str, value: &str) {
        let (selector, value) = (json!(selector), json!(value));
        self.wait_for(&format!("find({selector})"));
        self.evaluate(&format!(
            "(() => {{
                const element = find({selector});
                element.value = {value};
                element.dispatchEvent(new Event('change', {{ bubbles: true }}));
            }})()"
        ));
    }

    /// Sets the size of the page's viewport in CSS pixels. The browser of a phone has scroll bars without a width, and
    /// enlarges the viewport for a page that is too wide.
    #[track_caller]
    pub fn set_viewport(&mut self, width: u32, height: u32, is_phone: bool) {
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone,
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// A picture of the viewport, as PNG.
    #[track_caller]
    pub fn screenshot(&mut self) -> Vec<u8> {
        let result = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        result["data"].as_str().and_then(base64::decode).expect("a picture in Base64")
    }

    /// The exceptions of the page, and the warnings and errors that the browser has logged about it, such as violations
    /// of the content security policy and failed requests. Each is returned once.
    #[track_caller]
    pub fn take_problems(&mut self) -> Vec<String> {
        // Events that have happened before a reply arrive before it.
        self.evaluate("0");
        std::mem::take(&mut self.problems)
    }

    fn try_evaluate(&mut self, expression: &str) -> Result<Value, String> {
        let request = json!({
            "expression": format!("(() => {{ {FUNCTIONS} return ({expression}); }})()"),
            "awaitPromise": true,
            "returnByValue": true,
        });
        let result = self.try_call("Runtime.evaluate", &request)?;
        match result.get("exceptionDetails") {
            Some(details) => Err(exception_text(details)),
            None => Ok(result["result"]["value"].clone()),
        }
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: &Value) -> Value {
        match self.try_call(method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method} {params}: {error}"),
        }
    }

    /// Sends a request and waits for its reply.
    fn try_call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.sent += 1;
        let mut request = json!({ "id": self.sent, "method": method, "params": params });
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.socket.send(TEXT, request.to_string().as_bytes());
        loop {
            let text = self.socket.text();
            let mut message: Value = serde_json::from_str(&text).expect("a message is JSON");
            if message["id"] == self.sent {
                return match message.get("error") {
                    Some(error) => Err(error["message"].to_string()),
                    None => Ok(message["result"].take()),
                };
            }
            self.problems.extend(problem_of(&message));
        }
    }

    /// Fails the test, and shows what the page showed.
    #[track_caller]
    fn give_up(&mut self, why: &str) -> ! {
        let picture = std::env::temp_dir().join(format!("brisk-page-{}.png", std::process::id()));
        let saved = fs::write(&picture, self.screenshot());
        let text = self.try_evaluate("document.body.innerText");
        let text = text.map_or_else(|error| error, |text| text.as_str().unwrap_or("").to_owned());
        let problems = self.take_problems().join("\n");
        panic!(
            "{why}\n--- picture: {} ({saved:?})\n--- text of the page:\n{text}\n--- problems:\n{problems}",
            picture.display()
        );
    }
}

impl BrowserProcess {
    #[track_caller]
    fn spawn(program: &Path) -> BrowserProcess {
        let directory = TempDir::new();
        let home = directory.path("home");
        fs::create_dir(&home).expect("the directory can be created");
        let log = File::create(directory.path("log")).expect("the log can be written");
        let mut command = if Path::new("/usr/bin/setpriv").exists() {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args([
                "--no-first-run",
                "--no-default-browser-check",
                "--disable-background-networking",
            ])
            .args(["--disable-component-update", "--disable-sync", "--disable-extensions"])
            .args(["--password-store=basic", "--lang=en-US", "--remote-allow-origins=*"])
            .args(["--ignore-certificate-errors", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", directory.path("profile").display()))
            .arg("about:blank")
            // All of its files are in the directory.
            .env("HOME", &home)
            .env("TMPDIR", &home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log can be written"))
            .stderr(log);
        let child = command.spawn().expect("the browser starts");
        BrowserProcess { child, directory }
    }

    /// Waits until DevTools accepts connections. Returns its port and the path of the WebSocket.
    #[track_caller]
    fn wait_for_address(&mut self) -> (u16, String) {
        let file = self.directory.path("profile").join("DevToolsActivePort");
        let mut address = None;
        let mut ended = None;
        holds_within(DEADLINE, || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let lines = text.split_once('\n').filter(|(_, path)| path.starts_with("/devtools/"));
            address = lines.and_then(|(port, path)| Some((port.parse().ok()?, path.to_owned())));
            ended = self.child.try_wait().ok().flatten();
            address.is_some() || ended.is_some()
        });
        address.unwrap_or_else(|| {
            let log = fs::read_to_string(self.directory.path("log")).unwrap_or_default();
            panic!("the browser does not start ({ended:?}):\n{log}");
        })
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        // The processes of the browser are in its group. The shell's built-in `kill` can signal a group.
        let kill = format!("kill -KILL -- -{}", self.child.id());
        let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A process that has not ended yet may create files in the directory, which is removed afterwards.
        let path = self.directory.path("");
        let path = path.to_str().expect("the path is UTF-8");
        holds_within(DEADLINE, || !is_running(self.child.id(), path));
    }
}

/// Reports whether a process is running that is in this group, or whose command line contains this path. The processes
/// that handle crashes are not in the group, and end after the browser.
fn is_running(group: u32, path: &str) -> bool {
    let read = |process: &fs::DirEntry, name: &str| {
        let bytes = fs::read(process.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.any(|process| {
        let stat = read(&process, "stat");
        // The state, the parent and the group follow the name in parentheses.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        let ended = fields.first().is_some_and(|state| ["Z", "X"].contains(state));
        let is_member = fields.get(2).is_some_and(|field| *field == group.to_string());
        !ended && (is_member || read(&process, "cmdline").contains(path))
    })
}

/// The path of Chromium in `PATH`.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join("chromium"))
        .find(|path| path.is_file())
}

/// The text of an event that reports an exception, or a warning or an error in a log.
fn problem_of(message: &Value) -> Option<String> {
    let params = &message["params"];
    match message["method"].as_str()? {
        "Runtime.exceptionThrown" => {
            Some(format!("exception: {}", exception_text(&params["exceptionDetails"])))
        }
        "Runtime.consoleAPICalled" => {
            let is_problem = ["error", "warning", "assert"].contains(&params["type"].as_str()?);
            let texts = params["args"].as_array()?.iter().map(|argument| {
                let text = argument.get("description").unwrap_or(&argument["value"]);
                text.as_str().map_or_else(|| text.to_string(), str::to_owned)
            });
            is_problem.then(|| format!("console: {}", texts.collect::<Vec<_>>().join(" ")))
        }
        "Log.entryAdded" => {
            let entry = &params["entry"];
            let is_problem = ["error", "warning"].contains(&entry["level"].as_str()?);
            let (text, url) = (entry["text"].as_str()?, entry["url"].as_str().unwrap_or(""));
            is_problem.then(|| format!("log: {text} {url}"))
        }
        _ => None,
    }
}

fn exception_text(details: &Value) -> String {
    let text = details["exception"]["description"].as_str().or(details["text"].as_str());
    text.unwrap_or("an exception without a text").to_owned()
}
