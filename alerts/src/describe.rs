//! Descriptions of rules and alerts in sentences.

use gpumon_probe::{
    model::{Alert, FiringAlert, GpuRef, Severity, fields::Unit},
    units::{byte_size, duration, format_scaled, unit_names},
};

use crate::{
    rules::{Bound, Check, Per, Rate, Subject, Watch, field_of},
    status::Status,
};

/// Describes a rule's check, for example `Temperature above 85 °C for 2 min`.
pub fn watch(check: &Check) -> String {
    let what = match &check.watch {
        Watch::Value {
            subject,
            bound,
            rate,
        } => format!("{} {}", name(*subject), threshold(*subject, *bound, *rate)),
        Watch::Absent(None) => "No response".to_owned(),
        Watch::Absent(Some(subject)) => format!("No reading of {}", name(*subject)),
        Watch::Condition { kind, min_severity } => {
            let kind = kind.map_or_else(
                || "Any condition".to_owned(),
                |kind| format!("Condition {kind}"),
            );
            match min_severity {
                Severity::Notice => kind,
                least => format!("{kind}, {} or worse", severity_word(*least)),
            }
        }
    };
    let time = lasting(check);
    let gpus: Vec<String> = check.gpus.iter().map(ToString::to_string).collect();
    let gpus = match gpus.as_slice() {
        [] => String::new(),
        some => format!(" on GPU {}", some.join(", ")),
    };
    format!("{what}{time}{gpus}")
}

/// Describes a match, for example `Temperature 87 °C, above 85 °C for 2 min`.
pub(crate) fn met_value(
    check: &Check,
    subject: Subject,
    bound: Bound,
    rate: Option<Rate>,
    value: f64,
) -> String {
    let amount = match (rate, bound.is_share) {
        (Some(rate), _) => {
            let sign = if value < 0.0 { "-" } else { "+" };
            format!(
                "{sign}{} {}",
                amount(unit(subject), value.abs()),
                per(rate.per)
            )
        }
        (None, true) => format!("{} %", trimmed(value)),
        (None, false) => amount(unit(subject), value),
    };
    format!(
        "{} {amount}, {}{}",
        name(subject),
        threshold(subject, bound, rate),
        lasting(check)
    )
}

/// Describes an absent reading or GPU with the reason.
pub(crate) fn met_absence(check: &Check, subject: Option<Subject>, why: &str) -> String {
    let what = subject.map_or_else(
        || "No response".to_owned(),
        |subject| format!("No reading of {}", name(subject)),
    );
    format!("{what}{} ({why})", lasting(check))
}

/// Returns an alert's text with its GPU, for example `GPU 0: Temperature 87 °C, above 85 °C`.
pub fn placed(alert: &FiringAlert) -> String {
    match &alert.gpu {
        Some(GpuRef { index, .. }) => format!("GPU {index}: {}", alert.alert.text),
        None => alert.alert.text.clone(),
    }
}

/// Describes an alert in one line, for example `Critical: hot, GPU 0: ...`.
pub(crate) fn headline(status: Status, alert: &FiringAlert) -> String {
    let Alert {
        rule,
        severity: how_much,
        ..
    } = &alert.alert;
    let begin = match status {
        Status::Firing => severity(*how_much),
        Status::Resolved => "Resolved",
    };
    format!("{begin}: {rule}: {}", placed(alert))
}

/// Returns a severity for display.
fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Notice => "Notice",
        Severity::Warning => "Warning",
        Severity::Critical => "Critical",
    }
}

/// Returns a severity as written in JSON and in the alert file.
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Notice => "notice",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

fn lasting(check: &Check) -> String {
    if check.for_ms == 0 {
        String::new()
    } else {
        format!(" for {}", exact_duration(check.for_ms))
    }
}

fn threshold(subject: Subject, bound: Bound, rate: Option<Rate>) -> String {
    let side = if bound.is_above { "above" } else { "below" };
    match (rate, bound.is_share) {
        (Some(rate), _) => {
            let sign = if bound.value < 0.0 { "-" } else { "" };
            format!(
                "{side} {sign}{} {}",
                amount(unit(subject), bound.value.abs()),
                per(rate.per)
            )
        }
        (None, true) => format!("{side} {} % of its limit", trimmed(bound.value)),
        (None, false) => format!("{side} {}", amount(unit(subject), bound.value)),
    }
}

fn name(subject: Subject) -> &'static str {
    field_of!(subject, label)
}

fn unit(subject: Subject) -> Unit {
    field_of!(subject, unit)
}

fn per(per: Per) -> &'static str {
    match per {
        Per::Second => "per second",
        Per::Minute => "per minute",
        Per::Hour => "per hour",
    }
}

fn amount(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes => byte_size(value),
        Unit::BytesPerSecond => format!("{}/s", byte_size(value)),
        Unit::Joules if value >= 1e3 => format_scaled(value, &["J", "kJ", "MJ"]),
        Unit::Celsius | Unit::CelsiusDifference => format!("{} °C", trimmed(value)),
        _ => match unit_names(unit).first() {
            Some((name, _)) => format!("{} {name}", trimmed(value)),
            None => trimmed(value),
        },
    }
}

/// Formats a number with one decimal place, and without `.0`.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0")
        .map_or(text.clone(), ToOwned::to_owned)
}

/// Formats a duration that a user configured without rounding, so that 90 s are not shown as a
/// minute.
fn exact_duration(ms: u64) -> String {
    match ms / 1000 {
        seconds if !ms.is_multiple_of(1000) || (seconds < 7200 && seconds % 60 != 0) => {
            format!("{} s", ms as f64 / 1000.0)
        }
        _ => duration(ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::AlertRules;

    #[test]
    fn a_rule_is_told_in_a_sentence() {
        let told = |keys: &str| {
            let text = format!("[[rule]]\nname = \"a\"\n{keys}");
            watch(&AlertRules::from_toml(&text, "f").unwrap().rules[0].check)
        };
        let field = |id: &str, rest: &str| told(&format!("field = \"{id}\"\n{rest}"));
        assert_eq!(
            field("temperature.gpu_celsius", "above = 85\nfor = \"2m\""),
            "Temperature above 85 °C for 2 min"
        );
        assert_eq!(
            field("memory.used_bytes", "above = \"90 %\"\ngpus = [0, 1]"),
            "Memory above 90 % of its limit on GPU 0, 1"
        );
        assert_eq!(
            field(
                "power.energy_joules_total",
                "above = \"40 kJ\"\nper = \"minute\"\nfor = \"90s\""
            ),
            "Energy above 40.0 kJ per minute for 90 s"
        );
        assert_eq!(
            field("memory.used_bytes", "below = \"-1 GiB\"\nper = \"second\""),
            "Memory below -1.00 GiB per second"
        );
        assert_eq!(told("absent = true\nfor = \"30s\""), "No response for 30 s");
        assert_eq!(
            field("host.memory.used_bytes", "absent = true"),
            "No reading of RAM"
        );
        assert_eq!(
            told("condition = \"any\"\nmin_severity = \"critical\"\nfor = \"3h\""),
            "Any condition, critical or worse for 3.0 h"
        );
        assert_eq!(told("condition = \"throttled\""), "Condition throttled");
    }
}
