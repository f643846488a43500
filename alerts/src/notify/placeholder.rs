//! What of an alert can stand in the words of a command, as `{rule}`, and is in its environment, as `GPUMON_ALERT_RULE`.

use gpumon_probe::model::GpuRef;

use super::Notification;
use crate::describe;

/// All of them.
pub(crate) const NAMES: [&str; 8] = ["status", "rule", "severity", "text", "gpu", "uuid", "host", "since_ms"];

/// The first placeholder of a word that is none of them. Braces around anything but a name are not meant.
pub(crate) fn unknown(word: &str) -> Option<&str> {
    pieces(word).find_map(|(_, name)| name.filter(|name| !NAMES.contains(name)))
}

/// The values of one notification, in the order of [`NAMES`].
pub(super) struct Values([String; NAMES.len()]);

impl Values {
    pub(super) fn new(notification: &Notification, host: &str) -> Self {
        let alert = &notification.alert.alert;
        let gpu = notification.alert.gpu.as_ref();
        Self([
            notification.status.word().to_owned(),
            alert.rule.clone(),
            describe::severity_word(alert.severity).to_owned(),
            describe::placed(&notification.alert),
            gpu.map(|gpu| gpu.index.to_string()).unwrap_or_default(),
            gpu.and_then(|GpuRef { uuid, .. }| uuid.clone()).unwrap_or_default(),
            host.to_owned(),
            alert.since_ms.to_string(),
        ])
    }

    /// A word with its placeholders filled in. What is filled in is not looked at again.
    pub(super) fn fill(&self, word: &str) -> String {
        let filled = pieces(word).map(|(before, name)| {
            let at = name.and_then(|name| NAMES.iter().position(|known| *known == name));
            format!("{before}{}", at.map_or("", |at| &self.0[at]))
        });
        filled.collect()
    }

    /// The same for the environment.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, &str)> {
        NAMES.iter().zip(&self.0).map(|(name, value)| {
            // No variable has a zero byte.
            (format!("GPUMON_ALERT_{}", name.to_ascii_uppercase()), value.split('\0').next().unwrap_or_default())
        })
    }
}

/// A text before each placeholder with its name, and the text behind the last.
fn pieces(word: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(word);
    std::iter::from_fn(move || {
        let text = rest?;
        let found = text.match_indices('{').find_map(|(at, _)| {
            let (name, _) = text[at + 1..].split_once('}')?;
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
            is_name.then_some((at, name))
        });
        match found {
            Some((at, name)) => {
                rest = Some(&text[at + name.len() + 2..]);
                Some((&text[..at], Some(name)))
            }
            None => {
                rest = None;
                Some((text, None))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::payload::tests::notification;

    #[test]
    fn placeholders_are_filled_in_once() {
        let mut notification = notification();
        notification.alert.alert.rule = "{text}".into();
        let values = Values::new(&notification, "gpu1");
        assert_eq!(values.fill("{rule} on {host}: GPU {gpu}"), "{text} on gpu1: GPU 3");
        assert_eq!(values.fill(r#"{"a": {}, "b": {rule"#), r#"{"a": {}, "b": {rule"#);
        assert_eq!(values.fill("{status}{severity}"), "firingwarning");
        assert_eq!((unknown("{rule} {txet}"), unknown("{rule} {} {1}")), (Some("txet"), None));
        let variables: Vec<_> = values.variables().collect();
        assert!(variables.contains(&("GPUMON_ALERT_GPU".into(), "3")), "{variables:?}");
    }
}
