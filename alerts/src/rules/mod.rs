//! The validated content of an alert file.
//!
//! [`file`](mod@file) defines the TOML structure and parses single values, and [`check`] validates
//! them.

mod check;
pub(crate) mod file;

use std::{path::Path, time::Duration};

use gpumon_probe::{
    model::{
        ConditionKind, GpuName, GpuSample, HostSample, LimitClass, Severity,
        fields::{Field, Unwatched},
    },
    private_file::{PrivateFile, PrivateFileError, Secrecy},
    toml_error::TomlError,
};
use serde::Deserialize;
use thiserror::Error;

pub use file::{QuietTime, WebhookAddress, WebhookFormat};

/// The rules and receivers of an alert file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AlertRules {
    /// Rules with unique names, in the order of the file.
    pub rules: Vec<Rule>,
    /// Receivers with unique names, in the order of the file.
    pub receivers: Vec<Receiver>,
}

/// A rule of the alert file.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The unique name of the rule.
    pub name: String,
    /// The part of the rule that is compared with samples.
    pub check: RuleCheck,
    /// The severity of the rule's alerts.
    pub severity: Severity,
    /// An additional message for people, such as a link to a runbook.
    pub message: Option<String>,
    /// The interval at which a notification is repeated while its alert is firing.
    pub repeat_ms: Option<u64>,
    /// The times during which nobody is notified.
    pub quiet: Vec<QuietTime>,
    /// The names of the receivers that are notified.
    pub notify: Vec<String>,
}

/// The part of a rule that is compared with samples. The state of the rule depends on nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleCheck {
    pub watch: Watch,
    /// The GPUs that the rule applies to. Empty if the rule applies to all GPUs or is about the
    /// machine.
    pub gpus: Vec<GpuName>,
    /// The time for which the rule must match before it fires. For [`Watch::LimitedBy`], the time
    /// in which the shares of the causes are compared.
    pub for_ms: u64,
    /// The time for which the rule must not match before its alert is resolved.
    pub clear_for_ms: u64,
}

impl RuleCheck {
    /// Returns `true` if the alerts' texts can contain names of processes and notebooks.
    pub fn may_name_processes(&self) -> bool {
        match &self.watch {
            Watch::Condition { kind, .. } => {
                kind.is_none_or(ConditionKind::texts_contain_process_names)
            }
            Watch::Value { .. } | Watch::Absent(_) | Watch::LimitedBy(_) => false,
        }
    }
}

/// The value, absence, condition or limit that a rule watches for.
#[derive(Debug, Clone, PartialEq)]
pub enum Watch {
    /// A field with a value beyond a threshold.
    Value {
        subject: WatchedField,
        bound: Threshold,
        /// The rate to compare instead of the value itself.
        rate: Option<Rate>,
    },
    /// A field without a reading or, with `None`, a GPU that does not respond.
    Absent(Option<WatchedField>),
    /// A condition that gpumon derives from readings.
    Condition {
        /// The JSON name of the kind; `None` for any kind.
        kind: Option<&'static str>,
        /// The lowest severity that matches.
        min_severity: Severity,
    },
    /// The cause with the largest share of what limits a GPU during the rule's `for`, or in the
    /// newest window.
    LimitedBy(LimitClass),
}

/// Returns a property of a watched field. The field can belong to a GPU or to the machine.
macro_rules! field_of {
    ($subject:expr, $property:ident) => {
        match $subject {
            $crate::rules::WatchedField::Gpu(field) => field.$property,
            $crate::rules::WatchedField::Host(field) => field.$property,
        }
    };
}
pub(crate) use field_of;

/// A field of a GPU, or of the machine.
#[derive(Debug, Clone, Copy)]
pub enum WatchedField {
    /// A field of [`GPU_FIELDS`](gpumon_probe::model::fields::GPU_FIELDS).
    Gpu(&'static Field<GpuSample>),
    /// A field of [`HOST_FIELDS`](gpumon_probe::model::fields::HOST_FIELDS).
    Host(&'static Field<HostSample>),
}

/// A threshold, in the unit of its field or in percent of the field's limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Whether the rule matches values above the threshold; otherwise, values below the threshold.
    pub is_above: bool,
    /// The threshold beyond which the rule matches.
    pub value: f64,
    /// The clearing threshold. A firing rule matches until the field reaches this value.
    pub clear: f64,
    /// Whether `value` and `clear` are in percent of the field's limit.
    pub is_share: bool,
}

/// The rate of change of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The rate's unit of time.
    pub per: RateUnit,
    /// The length of the window in which the change is measured.
    pub over_ms: u64,
}

/// A unit of time for rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    Second,
    Minute,
    Hour,
}

/// A receiver of notifications.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// The unique name of the receiver.
    pub name: String,
    pub method: DeliveryMethod,
    /// The time limit of one delivery.
    pub timeout: Duration,
}

/// The method of delivery to a receiver.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryMethod {
    /// An HTTP request to a webhook.
    Webhook {
        address: WebhookAddress,
        format: WebhookFormat,
    },
    /// A program, executed without a shell.
    Command {
        /// The program and its arguments, with placeholders.
        words: Vec<String>,
    },
}

/// The reason why an alert file cannot be used.
#[derive(Debug, Error)]
pub enum AlertFileError {
    /// The file cannot be read, or other users could modify it and thereby choose the programs that
    /// gpumon runs.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// Part of the content is invalid.
    #[error(transparent)]
    Invalid(#[from] TomlError),
}

impl AlertRules {
    /// Reads an alert file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is invalid. The message contains the position
    /// and the remedy.
    pub fn read(path: &Path) -> Result<Self, AlertFileError> {
        let file = PrivateFile::read(path, Secrecy::Public)?;
        Ok(Self::from_toml(file.text(), &path.display().to_string())?)
    }

    /// Parses the text of an alert file. `origin` is the name of the file in errors.
    ///
    /// # Errors
    /// Returns an error if the text is invalid. The message contains the position and the remedy,
    /// but never a webhook's address.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, TomlError> {
        let parsed = toml::from_str(text)
            .map_err(|error| TomlError::from_parser_error(&error, text, origin));
        let read = parsed.and_then(|file: file::AlertFile| {
            check::validate(file)
                .map_err(|(span, message)| TomlError::new_at_span(&span, text, origin, message))
        });
        read.map_err(|error| TomlError {
            message: file::redact_urls(&error.message),
            ..error
        })
    }
}

impl AlertRules {
    /// Returns `true` if a rule uses a field that is read less often while nobody is watching. Such
    /// a field must be read with every sample, so that the rule fires without delay.
    pub fn uses_slow_fields(&self) -> bool {
        self.rules.iter().any(|rule| {
            let subject = rule.check.watch.watched_field();
            subject.is_some_and(|subject| field_of!(subject, unwatched) != Unwatched::EverySample)
        })
    }
}

impl WatchedField {
    pub fn id(self) -> &'static str {
        field_of!(self, id)
    }

    pub(crate) fn is_host_field(self) -> bool {
        matches!(self, Self::Host(_))
    }
}

impl Watch {
    /// Returns the watched field, if any.
    pub(crate) fn watched_field(&self) -> Option<WatchedField> {
        match self {
            Self::Value { subject, .. } => Some(*subject),
            Self::Absent(subject) => *subject,
            Self::Condition { .. } | Self::LimitedBy(_) => None,
        }
    }

    /// Returns `true` if the rule is about the machine, not about a GPU.
    pub(crate) fn is_about_host(&self) -> bool {
        self.watched_field()
            .is_some_and(WatchedField::is_host_field)
    }
}

impl PartialEq for WatchedField {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl RateUnit {
    /// Returns the length of the unit in seconds.
    pub fn length_in_seconds(self) -> f64 {
        match self {
            Self::Second => 1.0,
            Self::Minute => 60.0,
            Self::Hour => 3600.0,
        }
    }
}

impl Receiver {
    /// Returns a short description for people, without secrets, such as `webhook (slack)`.
    pub fn describe_kind(&self) -> String {
        match &self.method {
            DeliveryMethod::Webhook { format, .. } => format!("webhook ({format})"),
            DeliveryMethod::Command { words } => {
                let program = words.first().map_or("", String::as_str);
                format!(
                    "command ({})",
                    program.rsplit('/').next().unwrap_or_default()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
