//! Messages for receivers: the event with the name of the machine as JSON, or a message in the
//! format of Slack.

use gpumon_probe::model::Severity;
use serde_json::{Value, json};

use super::{Notification, Status};
use crate::{describe, rules::WebhookFormat};

/// Returns the body of a webhook request.
pub(super) fn body(format: WebhookFormat, notification: &Notification, host: &str) -> String {
    match format {
        WebhookFormat::Json => json(notification, host),
        WebhookFormat::Slack => slack(notification, host),
    }
    .to_string()
}

pub(super) fn json(notification: &Notification, host: &str) -> Value {
    let mut value = serde_json::to_value(notification.clone().into_event()).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("host".to_owned(), host.into());
    }
    value
}

/// Returns a message for Slack, which shows `text` in notifications and `blocks` in the channel.
fn slack(notification: &Notification, host: &str) -> Value {
    let headline = describe::headline(notification.status, &notification.alert);
    let sign = match (notification.status, notification.alert.alert.severity) {
        (Status::Resolved, _) => ":white_check_mark:",
        (Status::Firing, Severity::Critical) => ":red_circle:",
        (Status::Firing, Severity::Warning) => ":warning:",
        (Status::Firing, Severity::Notice) => ":information_source:",
    };
    let (headline, host) = (escaped(&headline), escaped(host));
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
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
pub(super) mod tests {
    use gpumon_probe::model::{Alert, FiringAlert, GpuRef};

    use super::*;

    pub(crate) fn notification() -> Notification {
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
            status: Status::Firing,
            at_ms: 7,
            alert: FiringAlert { gpu, alert },
        }
    }

    #[test]
    fn json_is_the_event_with_the_host() {
        let expected = json!({
            "host": "gpu1", "at_ms": 7, "gpu": { "index": 3, "uuid": "GPU-3" }, "what": "alert_firing", "rule": "hot",
            "severity": "warning", "since_ms": 5, "text": "Temperature 87 °C, above 85 °C for 2 min",
        });
        assert_eq!(
            body(WebhookFormat::Json, &notification(), "gpu1"),
            expected.to_string()
        );
    }

    #[test]
    fn slack_gets_text_and_no_markup_of_strangers() {
        let mut notification = notification();
        notification.status = Status::Resolved;
        notification.alert.alert.text = "<!channel> & co".into();
        let message: Value =
            serde_json::from_str(&body(WebhookFormat::Slack, &notification, "gpu1")).unwrap();
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
