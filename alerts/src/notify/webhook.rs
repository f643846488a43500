//! Webhooks: the body of a message, and one POST request by curl.
//!
//! curl supports TLS, the system's certificates and proxies, and is installed on nearly every
//! machine. A TLS library would add 1.3 MB to the program, an eighth of its size. The address is
//! passed through standard input, so that it does not appear in lists of processes.

use std::{fmt::Write, time::Duration};

use gpumon_probe::model::Severity;
use serde_json::{Value, json};

use super::{AlertStatus, DeliveryError, Notification, program};
use crate::{
    rules::{WebhookAddress, WebhookFormat},
    wording,
};

pub(super) const CURL: &str = "curl";
/// The maximum number of attempts if the webhook cannot be reached. These attempts take about one
/// day.
const MAX_ATTEMPTS_UNREACHABLE: u32 = 300;
/// The maximum number of attempts if the webhook responds with an error. These attempts take about
/// one hour. The limit is low because the webhook may reject only this notification, and later
/// notifications wait until the attempts end.
const MAX_ATTEMPTS_AFTER_ERROR_RESPONSE: u32 = 20;
/// The time between curl's own time limit and the time at which curl is killed. It allows curl to
/// report which step took too long.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(2);

/// Sends a JSON body.
///
/// # Errors
/// Returns an error if the request was not accepted. The message contains no part of the address.
pub(super) fn post_json(
    address: &WebhookAddress,
    body: &str,
    timeout: Duration,
) -> Result<(), DeliveryError> {
    let arguments = ["--disable", "--config", "-"]
        .map(str::to_owned)
        .into_iter();
    let output = program::run_program(
        CURL,
        arguments,
        [].into_iter(),
        &curl_config(address, body, timeout),
        timeout + TIMEOUT_MARGIN,
    )?;
    let (said, code) = output
        .text
        .rsplit_once(STATUS_MARKER)
        .unwrap_or((&output.text, "000"));
    if !output.is_success() {
        let said = said
            .trim()
            .replace(&address.target, "/…")
            .replace(&address.host, "the host");
        let said = said.lines().last().unwrap_or("curl failed");
        let message = format!(
            "the webhook cannot be reached: {}",
            said.trim_start_matches("curl: ")
        );
        return Err(DeliveryError {
            message,
            attempts: MAX_ATTEMPTS_UNREACHABLE,
        });
    }
    let (message, attempts) = match code.trim().parse::<u16>() {
        Ok(200..=299) => return Ok(()),
        Ok(code @ (408 | 429 | 500..)) => (
            format!("the webhook responded with status {code}; retrying"),
            MAX_ATTEMPTS_AFTER_ERROR_RESPONSE,
        ),
        Ok(code @ 300..=399) => (
            format!(
                "the webhook responded with status {code}, a redirect; use the URL that it \
                 redirects to"
            ),
            1,
        ),
        code => (
            format!(
                "the webhook rejected the request with status {}; check its URL and format",
                code.unwrap_or_default()
            ),
            1,
        ),
    };
    Err(DeliveryError { message, attempts })
}

/// The marker before the status code in curl's output.
const STATUS_MARKER: &str = "\nstatus ";

/// Returns curl's configuration, one option per line, for its standard input.
fn curl_config(address: &WebhookAddress, body: &str, timeout: Duration) -> String {
    let scheme = if address.is_tls { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", address.authority(), address.target);
    let agent = concat!("gpumon/", env!("CARGO_PKG_VERSION"));
    let seconds = timeout.as_secs().to_string();
    let mut text = String::from("silent\nshow-error\ngloboff\n");
    for (name, value) in [
        ("url", url.as_str()),
        ("proto", "=http,https"),
        ("max-time", &seconds),
        ("user-agent", agent),
        ("header", "Content-Type: application/json"),
        // An empty `Expect` header keeps curl from asking for the server's permission before it
        // sends a large body. Some servers never respond to such a question.
        ("header", "Expect:"),
        ("data-raw", body),
        ("output", "/dev/null"),
        ("write-out", &format!("{STATUS_MARKER}%{{http_code}}")),
    ] {
        // Writing to a string cannot fail, so the result is ignored.
        let _ = writeln!(text, "{name} = \"{}\"", quote_value(value));
    }
    text
}

fn quote_value(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
        .replace('\r', r"\r")
        .replace('\t', r"\t")
}

/// Returns the body of a webhook request: the event and the machine's name as JSON, or a message in
/// Slack's format.
pub(super) fn webhook_body(
    format: WebhookFormat,
    notification: &Notification,
    host: &str,
) -> String {
    match format {
        WebhookFormat::Json => event_json(notification, host),
        WebhookFormat::Slack => slack_message(notification, host),
    }
    .to_string()
}

pub(super) fn event_json(notification: &Notification, host: &str) -> Value {
    let mut value = serde_json::to_value(notification.clone().into_event()).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("host".to_owned(), host.into());
    }
    value
}

/// Returns a message for Slack, which shows `text` in notifications and `blocks` in the channel.
fn slack_message(notification: &Notification, host: &str) -> Value {
    let headline = wording::alert_headline(notification.status, &notification.alert);
    let sign = match (notification.status, notification.alert.alert.severity) {
        (AlertStatus::Resolved, _) => ":white_check_mark:",
        (AlertStatus::Firing, Severity::Critical) => ":red_circle:",
        (AlertStatus::Firing, Severity::Warning) => ":warning:",
        (AlertStatus::Firing, Severity::Notice) => ":information_source:",
    };
    let (headline, host) = (escape_slack(&headline), escape_slack(host));
    json!({
        "text": format!("{headline} ({host})"),
        "blocks": [
            { "type": "section", "text": { "type": "mrkdwn", "text": format!("{sign} {headline}") } },
            { "type": "context", "elements": [{ "type": "mrkdwn", "text": host }] },
        ],
    })
}

/// Escapes the characters that Slack reads as markup, because names of processes come from other
/// users.
fn escape_slack(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write as _},
        net::TcpListener,
        thread,
    };

    use super::*;

    /// Starts a server that sends `answer` to one request. The thread returns the request.
    fn start_server(answer: &'static str) -> (WebhookAddress, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!(
            "http://{}/services/T0/secret[1]?x={{a,b}}",
            listener.local_addr().unwrap()
        );
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            let mut piece = [0; 4096];
            while !request.contains("END") {
                let count = stream.read(&mut piece).unwrap();
                request.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            }
            stream.write_all(answer.as_bytes()).unwrap();
            request
        });
        (WebhookAddress::parse(&url).unwrap(), served)
    }

    const BODY: &str = "{\"text\":\"a \\\"quoted\\\" \\\\ °C @file\\n\",\"end\":\"END\"}";

    #[test]
    fn webhook_receives_unchanged_body() {
        let (address, served) = start_server("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(post_json(&address, BODY, Duration::from_secs(5)), Ok(()));
        let request = served.join().unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("POST /services/T0/secret[1]?x={a,b} HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(
            head.contains("Content-Type: application/json") && !head.contains("Expect"),
            "{head}"
        );
        assert_eq!(body, BODY);
    }

    #[test]
    fn failure_message_gives_remedy_but_hides_address() {
        for (answer, word, attempts) in [
            (
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                "status 404",
                1,
            ),
            (
                "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
                "status 503",
                MAX_ATTEMPTS_AFTER_ERROR_RESPONSE,
            ),
            (
                "HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n",
                "status 429",
                MAX_ATTEMPTS_AFTER_ERROR_RESPONSE,
            ),
            (
                "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
                "a redirect; use the URL",
                1,
            ),
            (
                "no HTTP at all",
                "cannot be reached",
                MAX_ATTEMPTS_UNREACHABLE,
            ),
        ] {
            let (address, served) = start_server(answer);
            let failure = post_json(&address, BODY, Duration::from_secs(5)).unwrap_err();
            served.join().unwrap();
            assert_eq!(
                (failure.message.contains(word), failure.attempts),
                (true, attempts),
                "{failure:?}"
            );
        }
        let address =
            WebhookAddress::parse("https://no-such-host.invalid/services/secret").unwrap();
        let failure = post_json(&address, BODY, Duration::from_secs(5)).unwrap_err();
        assert_eq!(failure.attempts, MAX_ATTEMPTS_UNREACHABLE, "{failure:?}");
        for secret in ["no-such-host", "services", "secret"] {
            assert!(!failure.message.contains(secret), "{failure:?}");
        }
    }
}

#[cfg(test)]
pub(super) mod payload_tests {
    use gpumon_probe::model::{Alert, FiringAlert, GpuRef};

    use super::*;

    pub(crate) fn make_notification() -> Notification {
        let text = "Temperature 87 °C, above 85 °C for 2 min".to_owned();
        let alert = Alert {
            rule: "hot".into(),
            severity: Severity::Warning,
            since_ms: 5,
            text,
            silenced: false,
            names_processes: false,
        };
        let gpu = Some(GpuRef {
            index: 3,
            uuid: Some("GPU-3".into()),
        });
        Notification {
            status: AlertStatus::Firing,
            at_ms: 7,
            alert: FiringAlert { gpu, alert },
        }
    }

    #[test]
    fn json_body_is_event_with_host() {
        let expected = json!({
            "host": "gpu1", "at_ms": 7, "gpu": { "index": 3, "uuid": "GPU-3" }, "what": "alert_firing", "rule": "hot",
            "severity": "warning", "since_ms": 5, "text": "Temperature 87 °C, above 85 °C for 2 \
                                                           min",
        });
        assert_eq!(
            webhook_body(WebhookFormat::Json, &make_notification(), "gpu1"),
            expected.to_string()
        );
    }

    #[test]
    fn slack_message_escapes_markup() {
        let mut notification = make_notification();
        notification.status = AlertStatus::Resolved;
        notification.alert.alert.text = "<!channel> & co".into();
        let message: Value =
            serde_json::from_str(&webhook_body(WebhookFormat::Slack, &notification, "gpu1"))
                .unwrap();
        assert_eq!(
            message["text"],
            "Resolved: hot: GPU 3: &lt;!channel&gt; &amp; co (gpu1)"
        );
        let shown = message["blocks"][0]["text"]["text"].as_str().unwrap();
        assert_eq!(
            shown,
            ":white_check_mark: Resolved: hot: GPU 3: &lt;!channel&gt; &amp; co"
        );
    }
}
