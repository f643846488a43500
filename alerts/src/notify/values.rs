//! The values of an alert for placeholders in a command's arguments, such as `{rule}`, and for
//! environment variables, such as `GPUMON_ALERT_RULE`.

use gpumon_probe::model::GpuRef;

use super::Notification;
use crate::{
    describe,
    placeholder::{PLACEHOLDER_NAMES, split_placeholders},
};

/// The values of one notification, in the order of the placeholder names.
pub(super) struct PlaceholderValues([String; PLACEHOLDER_NAMES.len()]);

impl PlaceholderValues {
    pub(super) fn new(notification: &Notification, host: &str) -> Self {
        let alert = &notification.alert.alert;
        let gpu = notification.alert.gpu.as_ref();
        // Neither an argument nor an environment variable can contain a zero byte.
        let without_zeros = |text: String| text.replace('\0', " ");
        let values = [
            notification.status.as_str().to_owned(),
            alert.rule.clone(),
            describe::severity_word(alert.severity).to_owned(),
            describe::alert_text_with_gpu(&notification.alert),
            gpu.map(|gpu| gpu.index.to_string()).unwrap_or_default(),
            gpu.and_then(|GpuRef { uuid, .. }| uuid.clone())
                .unwrap_or_default(),
            host.to_owned(),
            alert.since_ms.to_string(),
        ];
        Self(values.map(without_zeros))
    }

    /// Returns `word` with its placeholders replaced. Placeholders within values are not replaced,
    /// and a value that begins with `-` does not turn the word into an option.
    pub(super) fn fill_placeholders(&self, word: &str) -> String {
        let filled = split_placeholders(word).map(|(before, name)| {
            let at =
                name.and_then(|name| PLACEHOLDER_NAMES.iter().position(|known| *known == name));
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
        PLACEHOLDER_NAMES.iter().zip(&self.0).map(|(name, value)| {
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
    use crate::notify::payload::tests::make_notification;

    #[test]
    fn value_cannot_become_option_or_contain_nul() {
        let mut notification = make_notification();
        notification.alert.gpu = None;
        notification.alert.alert.text = "--exec=rm\0x".into();
        let values = PlaceholderValues::new(&notification, "gpu1");
        assert_eq!(
            (
                values.fill_placeholders("{text}"),
                values.fill_placeholders("--body={text}")
            ),
            (" --exec=rm x".into(), "--body=--exec=rm x".into())
        );
        assert!(values.variables().all(|(_, value)| !value.contains('\0')));
    }

    #[test]
    fn placeholders_inside_values_are_not_expanded() {
        let mut notification = make_notification();
        notification.alert.alert.rule = "{text}".into();
        let values = PlaceholderValues::new(&notification, "gpu1");
        assert_eq!(
            values.fill_placeholders("{rule} on {host}: GPU {gpu}"),
            "{text} on gpu1: GPU 3"
        );
        assert_eq!(
            values.fill_placeholders(r#"{"a": {}, "b": {rule"#),
            r#"{"a": {}, "b": {rule"#
        );
        assert_eq!(
            values.fill_placeholders("{status}{severity}"),
            "firingwarning"
        );
        let variables: Vec<_> = values.variables().collect();
        assert!(
            variables.contains(&("GPUMON_ALERT_GPU".into(), "3")),
            "{variables:?}"
        );
    }
}
