//! A headless Chromium, driven over its debugging pipe: messages of JSON, each ended by a NUL
//! byte (Chrome DevTools Protocol). Time in the page is real time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a page may take on a machine that others use.
const PATIENCE: Duration = Duration::from_secs(120);

/// One page of one browser; both end with this value.
pub struct Page {
    browser: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    profile: tempfile::TempDir,
    session: String,
    calls: u64,
}

impl Page {
    /// Opens `url` in a window of `width` by `height` pixels.
    pub fn open(url: &str, width: u32, height: u32) -> Page {
        let profile = tempfile::tempdir().expect("a temporary directory can be made");
        // The pipe is on descriptors 3 and 4 by definition; a shell puts ours there.
        let mut browser = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>&2", "chromium"])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                // Shared memory is small in containers.
                "--disable-dev-shm-usage",
                // Nothing but the page is asked for.
                "--disable-background-networking",
                "--disable-component-update",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell can be run");
        let input = browser.stdin.take().expect("it was piped");
        let output = BufReader::new(browser.stdout.take().expect("it was piped"));
        let mut page = Page { browser, input, output, profile, session: String::new(), calls: 0 };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached =
            page.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        page.session = attached["sessionId"].as_str().expect("a session has an identifier").to_owned();
        let answer = page.call("Page.navigate", json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        page
    }

    /// Sends one command and answers its result; events that come in between are passed over.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).expect("chromium reads its commands");
        loop {
            let mut answer = Vec::new();
            self.output.read_until(0, &mut answer).expect("the pipe can be read");
            assert_eq!(
                answer.pop(),
                Some(0),
                "chromium ended while it was asked for {method}: is it installed?"
            );
            let answer: Value = serde_json::from_slice(&answer).expect("chromium speaks JSON");
            if answer["id"] == json!(self.calls) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// Keeps a picture of the whole page as `NAME.png` in the folder that the environment variable
    /// `ARCHIPEL_TEST_SCREENSHOTS` names, for people to look at; without one, nothing happens.
    pub fn show(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("ARCHIPEL_TEST_SCREENSHOTS") else { return };
        let shot =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        let picture = decode_base64(shot["data"].as_str().expect("a picture is text"));
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(&path, picture).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// The value of a JavaScript expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let answer =
            self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until the expression is true; panics with what the page shows when it does not come.
    pub fn wait_for(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.evaluate(expression) != json!(true) {
            if begin.elapsed() > PATIENCE {
                panic!("`{expression}` did not come true:\n{}", self.evaluate("document.body.innerText"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Its profile goes next; a browser that is gone already needs no killing.
        let _ = self.browser.kill();
        let _ = self.browser.wait();
        let _ = self.profile.path();
    }
}

/// RFC 4648, as Chromium writes it.
fn decode_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte)) {
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
