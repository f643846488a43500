//! Descriptions of rules and alerts in sentences.

use gpumon_probe::{
    model::{Alert, FiringAlert, GpuRef, Severity, fields::Unit},
    units::{format_byte_size, format_duration, format_scaled, unit_names},
};

use crate::rules::{Rate, RateUnit, RuleCheck, Threshold, Watch, WatchedField, field_of};

/// Describes a rule's check, for example `Temperature above 85 °C for 2 min`.
pub fn describe_check(check: &RuleCheck) -> String {
    let what = match &check.watch {
        Watch::Value {
            subject,
            bound,
            rate,
        } => format!(
            "{} {}",
            field_label(*subject),
            describe_threshold(*subject, *bound, *rate)
        ),
        Watch::Absent(None) => "No response".to_owned(),
        Watch::Absent(Some(subject)) => format!("No reading of {}", field_label(*subject)),
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
        Watch::LimitedBy(cause) => cause.label().to_owned(),
    };
    let time = duration_suffix(check);
    let gpus: Vec<String> = check.gpus.iter().map(ToString::to_string).collect();
    let gpus = match gpus.as_slice() {
        [] => String::new(),
        some => format!(" on GPU {}", some.join(", ")),
    };
    format!("{what}{time}{gpus}")
}

/// Describes a match, for example `Temperature 87 °C, above 85 °C for 2 min`.
pub(crate) fn describe_match(
    check: &RuleCheck,
    subject: WatchedField,
    bound: Threshold,
    rate: Option<Rate>,
    value: f64,
) -> String {
    let amount = match (rate, bound.is_share) {
        (Some(rate), _) => {
            let sign = if value < 0.0 { "-" } else { "+" };
            format!(
                "{sign}{} {}",
                format_amount(field_unit(subject), value.abs()),
                rate_unit_name(rate.per)
            )
        }
        (None, true) => format!("{} %", format_number(value)),
        (None, false) => format_amount(field_unit(subject), value),
    };
    format!(
        "{} {amount}, {}{}",
        field_label(subject),
        describe_threshold(subject, bound, rate),
        duration_suffix(check)
    )
}

/// Describes the absence of a reading or GPU, with the reason.
pub(crate) fn describe_absence(
    check: &RuleCheck,
    subject: Option<WatchedField>,
    why: &str,
) -> String {
    let what = subject.map_or_else(
        || "No response".to_owned(),
        |subject| format!("No reading of {}", field_label(subject)),
    );
    format!("{what}{} ({why})", duration_suffix(check))
}

/// Joins the summary of what limits a GPU with the advice, as in `Host-bound 62 %: …. Raise …`.
pub(crate) fn describe_main_cause(summary: &str, advice: &str) -> String {
    let [summary, advice] = [summary, advice].map(|text| text.trim_end_matches('.'));
    if advice.is_empty() {
        summary.to_owned()
    } else {
        format!("{summary}. {advice}")
    }
}

/// Returns an alert's text with its GPU, for example `GPU 0: Temperature 87 °C, above 85 °C`.
pub fn alert_text_with_gpu(alert: &FiringAlert) -> String {
    match &alert.gpu {
        Some(GpuRef { index, .. }) => format!("GPU {index}: {}", alert.alert.text),
        None => alert.alert.text.clone(),
    }
}

/// Describes an alert in one line, for example `Critical: hot, GPU 0: ...`.
pub(crate) fn alert_headline(status: AlertStatus, alert: &FiringAlert) -> String {
    let Alert {
        rule,
        severity: how_much,
        ..
    } = &alert.alert;
    let begin = match status {
        AlertStatus::Firing => severity_label(*how_much),
        AlertStatus::Resolved => "Resolved",
    };
    format!("{begin}: {rule}: {}", alert_text_with_gpu(alert))
}

/// Returns a severity for display.
fn severity_label(severity: Severity) -> &'static str {
    match severity {
        Severity::Notice => "Notice",
        Severity::Warning => "Warning",
        Severity::Critical => "Critical",
    }
}

/// Returns the name of a severity in JSON and in the alert file.
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Notice => "notice",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

fn duration_suffix(check: &RuleCheck) -> String {
    if check.for_ms == 0 {
        String::new()
    } else {
        format!(" for {}", format_exact_duration(check.for_ms))
    }
}

fn describe_threshold(subject: WatchedField, bound: Threshold, rate: Option<Rate>) -> String {
    let side = if bound.is_above { "above" } else { "below" };
    match (rate, bound.is_share) {
        (Some(rate), _) => {
            let sign = if bound.value < 0.0 { "-" } else { "" };
            format!(
                "{side} {sign}{} {}",
                format_amount(field_unit(subject), bound.value.abs()),
                rate_unit_name(rate.per)
            )
        }
        (None, true) => format!("{side} {} % of its limit", format_number(bound.value)),
        (None, false) => format!("{side} {}", format_amount(field_unit(subject), bound.value)),
    }
}

fn field_label(subject: WatchedField) -> &'static str {
    field_of!(subject, label)
}

fn field_unit(subject: WatchedField) -> Unit {
    field_of!(subject, unit)
}

fn rate_unit_name(per: RateUnit) -> &'static str {
    match per {
        RateUnit::Second => "per second",
        RateUnit::Minute => "per minute",
        RateUnit::Hour => "per hour",
    }
}

fn format_amount(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes => format_byte_size(value),
        Unit::BytesPerSecond => format!("{}/s", format_byte_size(value)),
        Unit::Joules if value >= 1e3 => format_scaled(value, &["J", "kJ", "MJ"]),
        Unit::Celsius | Unit::CelsiusDifference => format!("{} °C", format_number(value)),
        _ => match unit_names(unit).first() {
            Some((name, _)) => format!("{} {name}", format_number(value)),
            None => format_number(value),
        },
    }
}

/// Formats a number with at most one decimal place.
fn format_number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0")
        .map_or(text.clone(), ToOwned::to_owned)
}

/// Formats a configured duration exactly, so that 90 s are not shown as a minute.
fn format_exact_duration(ms: u64) -> String {
    match ms / 1000 {
        seconds if !ms.is_multiple_of(1000) || (seconds < 7200 && seconds % 60 != 0) => {
            format!("{} s", ms as f64 / 1000.0)
        }
        _ => format_duration(ms),
    }
}

/// The status of an alert in a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertStatus {
    Firing,
    Resolved,
}

impl AlertStatus {
    /// Returns the status as written in JSON and environment variables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::AlertRules;

    #[test]
    fn rule_description_is_one_sentence() {
        let reported = |keys: &str| {
            let text = format!("[[rule]]\nname = \"a\"\n{keys}");
            describe_check(&AlertRules::from_toml(&text, "f").unwrap().rules[0].check)
        };
        let field = |id: &str, rest: &str| reported(&format!("field = \"{id}\"\n{rest}"));
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
        assert_eq!(
            reported("absent = true\nfor = \"30s\""),
            "No response for 30 s"
        );
        assert_eq!(
            field("host.memory.used_bytes", "absent = true"),
            "No reading of RAM"
        );
        assert_eq!(
            reported("condition = \"any\"\nmin_severity = \"critical\"\nfor = \"3h\""),
            "Any condition, critical or worse for 3.0 h"
        );
        assert_eq!(reported("condition = \"throttled\""), "Condition throttled");
        assert_eq!(
            reported("limited_by = \"host\"\nfor = \"10m\"\ngpus = [1]"),
            "Host-bound for 10 min on GPU 1"
        );
    }
}
