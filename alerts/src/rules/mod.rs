//! The alert file: what it says, once every word of it has been understood.
//!
//! [`file`] is what can be typed, [`check`] what it means; [`time`], [`quiet`] and [`address`] are
//! the forms of single values.

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

/// Rules, and who is notified.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AlertRules {
    /// In the order of the file, each with a name of its own.
    pub rules: Vec<Rule>,
    /// In the order of the file, each with a name of its own.
    pub receivers: Vec<Receiver>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name, of all rules its own.
    pub name: String,
    /// What it watches, and for how long.
    pub check: Check,
    /// How much its alerts matter.
    pub severity: Severity,
    /// What people should know beside what was met, as a link to a runbook.
    pub message: Option<String>,
    /// After this time, an alert that still fires is sent again.
    pub repeat_ms: Option<u64>,
    /// When nobody is notified.
    pub quiet: Vec<Quiet>,
    /// The names of those who are notified.
    pub notify: Vec<String>,
}

/// What a rule watches, and for how long: all that its state depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What it watches for.
    pub watch: Watch,
    /// Of which GPUs; empty for all of them, and for the machine.
    pub gpus: Vec<GpuName>,
    /// It must hold for so long before it fires.
    pub for_ms: u64,
    /// It must not hold for so long before it is resolved.
    pub clear_for_ms: u64,
}

impl Check {
    /// Returns `true` if the texts of its alerts can have the names of processes and notebooks.
    pub fn names_processes(&self) -> bool {
        match &self.watch {
            Watch::Condition { kind, .. } => kind.is_none_or(ConditionKind::names_processes),
            Watch::Value { .. } | Watch::Absent(_) => false,
        }
    }
}

/// What a rule watches for.
#[derive(Debug, Clone, PartialEq)]
pub enum Watch {
    /// A field beyond a threshold.
    Value {
        /// Which.
        subject: Subject,
        /// The threshold.
        bound: Bound,
        /// Where it is not the value that is compared, but how fast it changes.
        rate: Option<Rate>,
    },
    /// A reading that is not there; without a subject, a GPU that does not respond.
    Absent(Option<Subject>),
    /// A condition that gpumon itself derives.
    Condition {
        /// As in JSON; `None` for any.
        kind: Option<&'static str>,
        /// Less severe ones do not count.
        min_severity: Severity,
    },
}

/// Returns a property that fields of GPUs and of the machine have alike.
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
    /// One of [`GPU_FIELDS`](gpumon_probe::model::fields::GPU_FIELDS).
    Gpu(&'static Field<GpuSample>),
    /// One of [`HOST_FIELDS`](gpumon_probe::model::fields::HOST_FIELDS).
    Host(&'static Field<HostSample>),
}

/// A threshold, in the unit of its field, or in percent of what the field is out of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Whether it is exceeded upwards.
    pub is_above: bool,
    /// Beyond this, the rule holds.
    pub value: f64,
    /// It holds until the value is back at or behind this.
    pub clear: f64,
    /// Whether both are percent of the field's limit.
    pub is_share: bool,
}

/// How fast a field changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The change in this time is compared.
    pub per: Per,
    /// It is taken over this window.
    pub over_ms: u64,
}

/// The time in which a change is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

/// Somebody who is notified.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// Its name, of all receivers its own.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// How long one delivery may take.
    pub timeout: Duration,
}

/// How a receiver is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// By an HTTP request.
    Webhook {
        /// Where to.
        address: Address,
        /// What its body is.
        format: WebhookFormat,
    },
    /// By a program, without a shell.
    Command {
        /// The program and its arguments, with placeholders.
        words: Vec<String>,
    },
}

/// Why there are no rules.
#[derive(Debug, Error)]
pub enum BadRules {
    /// The file cannot be read, or others could have their programs started by it.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something in it is not understood.
    #[error(transparent)]
    Invalid(#[from] TomlError),
}

impl AlertRules {
    /// Reads an alert file.
    ///
    /// # Errors
    /// Where it cannot be read, or something in it is wrong: where, and what would be right.
    pub fn read(path: &Path) -> Result<Self, BadRules> {
        let file = PrivateFile::read(path, Secrecy::Public)?;
        Ok(Self::from_toml(file.text(), &path.display().to_string())?)
    }

    /// Reads the text of an alert file; `origin` is what errors call it.
    ///
    /// # Errors
    /// As [`Self::read`]. No error quotes an address.
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
    /// Whether a rule is about a number that is read more rarely while nobody watches: it is to be
    /// told as soon as it can be.
    pub fn watch(&self) -> bool {
        self.rules.iter().any(|rule| {
            let subject = rule.check.watch.subject();
            subject.is_some_and(|subject| field_of!(subject, unwatched) != Unwatched::EverySample)
        })
    }
}

impl Subject {
    /// The field's id.
    pub fn id(self) -> &'static str {
        field_of!(self, id)
    }

    /// Returns `true` for a field of the machine.
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::Host(_))
    }
}

impl Watch {
    /// Returns the field that is watched, if there is one.
    pub(crate) fn subject(&self) -> Option<Subject> {
        match self {
            Self::Value { subject, .. } => Some(*subject),
            Self::Absent(subject) => *subject,
            Self::Condition { .. } => None,
        }
    }

    /// Returns `true` if it is about the machine and not a GPU.
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
    /// In seconds.
    pub fn seconds(self) -> f64 {
        match self {
            Self::Second => 1.0,
            Self::Minute => 60.0,
            Self::Hour => 3600.0,
        }
    }
}

impl Receiver {
    /// What it is, for people, without its secrets.
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
