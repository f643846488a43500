//! The values of an alert for the arguments of a command, such as `{rule}`, and for its
//! environment, such as `GPUMON_ALERT_RULE`.

use gpumon_probe::model::GpuRef;

use super::Notification;
use crate::{
    describe,
    placeholder::{NAMES, pieces},
};

/// The values of one notification, in the order of the placeholder names.
pub(super) struct Values([String; NAMES.len()]);

impl Values {
    pub(super) fn new(notification: &Notification, host: &str) -> Self {
        let alert = &notification.alert.alert;
        let gpu = notification.alert.gpu.as_ref();
        // Neither an argument nor an environment variable can contain a zero byte.
        let without_zeros = |text: String| text.replace('\0', " ");
        let values = [
            notification.status.word().to_owned(),
            alert.rule.clone(),
            describe::severity_word(alert.severity).to_owned(),
            describe::placed(&notification.alert),
            gpu.map(|gpu| gpu.index.to_string()).unwrap_or_default(),
            gpu.and_then(|GpuRef { uuid, .. }| uuid.clone())
                .unwrap_or_default(),
            host.to_owned(),
            alert.since_ms.to_string(),
        ];
        Self(values.map(without_zeros))
    }

    /// Returns a word with its placeholders replaced. Placeholders in the values are not replaced,
    /// and no value turns the word into an option.
    pub(super) fn fill(&self, word: &str) -> String {
        let filled = pieces(word).map(|(before, name)| {
            let at = name.and_then(|name| NAMES.iter().position(|known| *known == name));
            format!("{before}{}", at.map_or("", |at| &self.0[at]))
        });
        let filled: String = filled.collect();
        if filled.starts_with('-') && !word.starts_with('-') {
            format!(" {filled}")
        } else {
            filled
        }
    }

    /// Returns the values as environment variables.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, &str)> {
        NAMES.iter().zip(&self.0).map(|(name, value)| {
            (
                format!("GPUMON_ALERT_{}", name.to_ascii_uppercase()),
                value.as_str(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::payload::tests::notification;

    #[test]
    fn value_makes_no_option_and_has_no_zero() {
        let mut notification = notification();
        notification.alert.gpu = None;
        notification.alert.alert.text = "--exec=rm\0x".into();
        let values = Values::new(&notification, "gpu1");
        assert_eq!(
            (values.fill("{text}"), values.fill("--body={text}")),
            (" --exec=rm x".into(), "--body=--exec=rm x".into())
        );
        assert!(values.variables().all(|(_, value)| !value.contains('\0')));
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        let mut notification = notification();
        notification.alert.alert.rule = "{text}".into();
        let values = Values::new(&notification, "gpu1");
        assert_eq!(
            values.fill("{rule} on {host}: GPU {gpu}"),
            "{text} on gpu1: GPU 3"
        );
        assert_eq!(
            values.fill(r#"{"a": {}, "b": {rule"#),
            r#"{"a": {}, "b": {rule"#
        );
        assert_eq!(values.fill("{status}{severity}"), "firingwarning");
        let variables: Vec<_> = values.variables().collect();
        assert!(
            variables.contains(&("GPUMON_ALERT_GPU".into(), "3")),
            "{variables:?}"
        );
    }
}
