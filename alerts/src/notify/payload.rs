//! Messages for receivers: the event and the machine's name as JSON, or a message in Slack's
//! format.

use gpumon_probe::model::Severity;
use serde_json::{Value, json};

use super::{AlertStatus, Notification};
use crate::{describe, rules::WebhookFormat};

/// Returns the body of a webhook request.
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
    let headline = describe::alert_headline(notification.status, &notification.alert);
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
pub(super) mod tests {
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
