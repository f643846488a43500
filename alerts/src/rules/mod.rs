//! The validated content of an alert file.
//!
//! [`file`] defines the TOML structure, and [`check`] validates it; [`time`], [`quiet`] and
//! [`address`] parse single values.

mod address;
mod check;
mod file;
mod quiet;
mod time;

use std::{path::Path, time::Duration};

use gpumon_probe::{
    model::{
        ConditionKind, GpuName, GpuSample, HostSample, Severity,
        fields::{Field, Unwatched},
    },
    private_file::{FileError, PrivateFile, Secrecy},
    toml_error::TomlError,
};
use serde::Deserialize;
use thiserror::Error;

pub use address::Address;
pub use file::WebhookFormat;
pub use quiet::Quiet;

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
    pub check: Check,
    /// The severity of the rule's alerts.
    pub severity: Severity,
    /// An additional message for people, such as a link to a runbook.
    pub message: Option<String>,
    /// The time after which a firing alert is sent again.
    pub repeat_ms: Option<u64>,
    /// The times at which nobody is notified.
    pub quiet: Vec<Quiet>,
    /// The names of the receivers that are notified.
    pub notify: Vec<String>,
}

/// The part of a rule that is compared with samples. The state of the rule depends on nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    pub watch: Watch,
    /// The GPUs of the rule; empty for all GPUs, and for the machine.
    pub gpus: Vec<GpuName>,
    /// The time for which the rule must match before it fires.
    pub for_ms: u64,
    /// The time for which the rule must not match before it is resolved.
    pub clear_for_ms: u64,
}

impl Check {
    /// Returns `true` if the texts of the alerts can contain names of processes and notebooks.
    pub fn names_processes(&self) -> bool {
        match &self.watch {
            Watch::Condition { kind, .. } => kind.is_none_or(ConditionKind::names_processes),
            Watch::Value { .. } | Watch::Absent(_) => false,
        }
    }
}

/// The value, absence or condition that a rule watches for.
#[derive(Debug, Clone, PartialEq)]
pub enum Watch {
    /// A field with a value beyond a threshold.
    Value {
        subject: Subject,
        bound: Bound,
        /// The rate to compare instead of the value itself.
        rate: Option<Rate>,
    },
    /// An absent reading; without a subject, a GPU that does not respond.
    Absent(Option<Subject>),
    /// A condition that gpumon derives from readings.
    Condition {
        /// The kind as in JSON; `None` for any kind.
        kind: Option<&'static str>,
        /// The lowest severity that counts.
        min_severity: Severity,
    },
}

/// Returns a property that fields of GPUs and of the machine share.
macro_rules! field_of {
    ($subject:expr, $property:ident) => {
        match $subject {
            $crate::rules::Subject::Gpu(field) => field.$property,
            $crate::rules::Subject::Host(field) => field.$property,
        }
    };
}
pub(crate) use field_of;

/// A field of a GPU, or of the machine.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    /// A field of [`GPU_FIELDS`](gpumon_probe::model::fields::GPU_FIELDS).
    Gpu(&'static Field<GpuSample>),
    /// A field of [`HOST_FIELDS`](gpumon_probe::model::fields::HOST_FIELDS).
    Host(&'static Field<HostSample>),
}

/// A threshold, in the unit of its field or in percent of the field's limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Whether the rule matches above the threshold, and not below it.
    pub is_above: bool,
    /// The threshold beyond which the rule matches.
    pub value: f64,
    /// The threshold at which the rule no longer matches.
    pub clear: f64,
    /// Whether both thresholds are in percent of the field's limit.
    pub is_share: bool,
}

/// The rate of change of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The unit of time of the change.
    pub per: Per,
    /// The length of the window in which the change is measured.
    pub over_ms: u64,
}

/// A unit of time for rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    Second,
    Minute,
    Hour,
}

/// A receiver of notifications.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// The unique name of the receiver.
    pub name: String,
    pub way: Way,
    /// The time limit of one delivery.
    pub timeout: Duration,
}

/// The method of delivery to a receiver.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// An HTTP request to a webhook.
    Webhook {
        address: Address,
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
pub enum BadRules {
    /// The file cannot be read, or other users could change it and so choose the programs that
    /// gpumon starts.
    #[error(transparent)]
    File(#[from] FileError),
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
    pub fn read(path: &Path) -> Result<Self, BadRules> {
        let file = PrivateFile::read(path, Secrecy::Public)?;
        Ok(Self::from_toml(file.text(), &path.display().to_string())?)
    }

    /// Parses the text of an alert file. `origin` is the name of the file in errors.
    ///
    /// # Errors
    /// Same as for [`Self::read`]. No error quotes an address.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, TomlError> {
        let parsed = toml::from_str(text).map_err(|error| TomlError::parse(&error, text, origin));
        let read = parsed.and_then(|file: file::AlertFile| {
            check::understood(file)
                .map_err(|(span, message)| TomlError::at(&span, text, origin, message))
        });
        read.map_err(|error| TomlError {
            message: address::hidden(&error.message),
            ..error
        })
    }
}

impl AlertRules {
    /// Returns `true` if a rule uses a field that is read less often while nobody watches. All of
    /// its values are needed to fire without delay.
    pub fn watch(&self) -> bool {
        self.rules.iter().any(|rule| {
            let subject = rule.check.watch.subject();
            subject.is_some_and(|subject| field_of!(subject, unwatched) != Unwatched::EverySample)
        })
    }
}

impl Subject {
    pub fn id(self) -> &'static str {
        field_of!(self, id)
    }

    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::Host(_))
    }
}

impl Watch {
    /// Returns the watched field, if any.
    pub(crate) fn subject(&self) -> Option<Subject> {
        match self {
            Self::Value { subject, .. } => Some(*subject),
            Self::Absent(subject) => *subject,
            Self::Condition { .. } => None,
        }
    }

    /// Returns `true` if the rule is about the machine and not about a GPU.
    pub(crate) fn is_of_host(&self) -> bool {
        self.subject().is_some_and(Subject::is_host)
    }
}

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Per {
    /// Returns the length of the unit in seconds.
    pub fn seconds(self) -> f64 {
        match self {
            Self::Second => 1.0,
            Self::Minute => 60.0,
            Self::Hour => 3600.0,
        }
    }
}

impl Receiver {
    /// Returns a short description for people, without secrets, such as `webhook (slack)`.
    pub fn kind(&self) -> String {
        match &self.way {
            Way::Webhook { format, .. } => format!("webhook ({format})"),
            Way::Command { words } => {
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
