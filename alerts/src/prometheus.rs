//! Export of the rules to Prometheus, as a rule file that uses the metrics of `/metrics` in base
//! units.
//!
//! To implement hysteresis, an exported expression reads the previous state of its own alert from
//! the series `ALERTS`. The notes list everything that a Prometheus rule cannot express: fields
//! without a metric, and percentage thresholds if the limit has no metric. Silences and repeated
//! notifications belong in Alertmanager.

use std::{fmt::Write, time::Duration};

use gpumon_probe::{
    derive::MAX_LIMITS_AGE_MS,
    model::{
        GpuName, LimitClass, Severity,
        fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, Limit, Unit},
    },
};

use crate::{
    rules::{AlertRules, Rate, Rule, RuleCheck, Threshold, Watch, WatchedField, field_of},
    wording,
};

/// The metrics that exported rules use in addition to the metrics of fields.
pub const METRICS: [&str; 7] = [
    UP,
    CONDITION,
    SEVERITY,
    LIMITED,
    COLLECTOR_UP,
    STATE,
    COLLECTOR_STATE,
];

const UP: &str = "gpumon_gpu_up";
const CONDITION: &str = "gpumon_condition";
const SEVERITY: &str = "gpumon_condition_severity";
const LIMITED: &str = "gpumon_gpu_limited_seconds_total";
const COLLECTOR_UP: &str = "gpumon_collector_up";
const STATE: &str = "gpumon_gpu_state";
const COLLECTOR_STATE: &str = "gpumon_collector_state";

/// Matches collectors that are paused or starting. They are not expected to read GPUs, so nothing
/// on their machines counts as absent.
const UNWATCHED_COLLECTORS: &str = "gpumon_collector_state{state=~\"paused|starting\"} == 1";

/// The shortest time in which the causes that limit a GPU are compared. It contains at least two
/// samples if the scrape interval is a minute.
const MIN_LIMITED_WINDOW_MS: u64 = 120_000;

/// The labels that identify a GPU across all machines. The index is needed because the UUID may be
/// unknown.
const ON_GPU: &str = "on (job, instance, gpu, uuid)";
const ON_HOST: &str = "on (job, instance)";

/// A Prometheus rule file, with notes on rules that could not be fully exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRules {
    /// The file, in YAML.
    pub text: String,
    /// A sentence for each rule that was left out or only partly exported.
    pub notes: Vec<String>,
}

/// Converts the rules to a rule file for Prometheus.
pub fn export(rules: &AlertRules) -> ExportedRules {
    let mut notes = Vec::new();
    let mut body = String::new();
    for rule in &rules.rules {
        match build_expression(rule) {
            Ok(expression) => write_rule(&mut body, rule, &expression),
            Err(why) => notes.push(format!("rule {} is not exported: {why}", rule.name)),
        }
        if !rule.quiet.is_empty() || rule.repeat_ms.is_some() {
            let name = &rule.name;
            notes.push(format!(
                "{name}: Prometheus rules have no `silence` or `repeat`; configure them in \
                 Alertmanager"
            ));
        }
    }
    let mut text = String::from("# Written by `gpumon alerts export --prometheus`.\n");
    for note in &notes {
        // Writing to a string cannot fail, so the result is ignored.
        let _ = writeln!(text, "# {note}");
    }
    if body.is_empty() {
        text.push_str("groups: []\n");
    } else {
        let _ = write!(text, "groups:\n  - name: gpumon\n    rules:\n{body}");
    }
    ExportedRules { text, notes }
}

fn write_rule(body: &mut String, rule: &Rule, expression: &str) {
    let Rule {
        check,
        name,
        severity,
        message,
        ..
    } = rule;
    let mut line = |indent: usize, key: &str, value: &str| {
        let _ = writeln!(body, "{:indent$}{key}: {value}", "");
    };
    line(6, "- alert", &quote_yaml(name));
    line(8, "expr", &quote_yaml(expression));
    // With `limited_by`, the expression is about the time `for`.
    if check.for_ms > 0 && !matches!(check.watch, Watch::LimitedBy(_)) {
        line(8, "for", &format_duration(check.for_ms));
    }
    if check.clear_for_ms > 0 {
        line(8, "keep_firing_for", &format_duration(check.clear_for_ms));
    }
    line(8, "labels", "");
    line(10, "severity", wording::severity_word(*severity));
    line(8, "annotations", "");
    let place = if check.watch.is_about_host() {
        ""
    } else {
        "{{ with $labels.gpu }}GPU {{ . }}: {{ end }}"
    };
    line(
        10,
        "summary",
        &quote_yaml(&format!(
            "{place}{}",
            escape_template(&wording::describe_check(check))
        )),
    );
    if let Some(message) = message {
        line(10, "description", &quote_yaml(&escape_template(message)));
    }
}

/// Quotes a string for YAML, which accepts JSON's string syntax.
fn quote_yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Escapes `text` so that Prometheus does not expand it as a template.
fn escape_template(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

fn format_duration(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{}s", ms / 1000)
    } else {
        format!("{ms}ms")
    }
}

/// Returns a PromQL expression that is true while the rule matches, or the reason why the rule
/// cannot be exported.
fn build_expression(rule: &Rule) -> Result<String, String> {
    let gpus = &rule.check.gpus;
    let each: Result<Vec<String>, String> = match &rule.check.watch {
        // Any of the rule's GPUs may be missing. Each GPU therefore needs its own expression.
        Watch::Absent(subject) if !gpus.is_empty() => gpus
            .iter()
            .map(|id| absence_expression(*subject, Some(id)))
            .collect(),
        _ => gpu_selectors(gpus)?
            .iter()
            .map(|selector| selector_expression(rule, selector))
            .collect(),
    };
    Ok(each?.join(" or "))
}

/// Returns an expression for an absence: a GPU that does not respond, a watched field without a
/// reading, or a node that exports no GPU with this ID.
fn absence_expression(
    subject: Option<WatchedField>,
    id: Option<&GpuName>,
) -> Result<String, String> {
    let label = id.map(build_gpu_label).transpose()?;
    let selector = label.as_ref().map(format_matcher).unwrap_or_default();
    let up = add_matchers(UP, &selector);
    let there = match subject {
        Some(subject @ WatchedField::Host(_)) => {
            return Ok(format!(
                "({COLLECTOR_UP} unless {ON_HOST} {}) unless {ON_HOST} ({UNWATCHED_COLLECTORS})",
                metric_name(subject)?
            ));
        }
        Some(subject @ WatchedField::Gpu(_)) => {
            format!(
                "(({up} unless {ON_GPU} {}) unless {ON_GPU} ({STATE}{{state=\"asleep\"}} == 1))",
                metric_name(subject)?
            )
        }
        None => format!("{up} == 0"),
    };
    // The collector's metric has no GPU label. The label of the missing GPU is added, so that each
    // missing GPU gets its own alert.
    let named = match label {
        None => COLLECTOR_UP.to_owned(),
        Some(Label { name, value }) => {
            format!("label_replace({COLLECTOR_UP}, \"{name}\", \"{value}\", \"\", \"\")")
        }
    };
    Ok(format!(
        "{there} or (({named} unless {ON_HOST} {up}) unless {ON_HOST} ({UNWATCHED_COLLECTORS}))"
    ))
}

fn selector_expression(rule: &Rule, selector: &str) -> Result<String, String> {
    Ok(match &rule.check.watch {
        Watch::Value {
            subject,
            bound,
            rate,
        } => value_expression(rule, *subject, *bound, *rate, selector)?,
        Watch::Absent(subject) => absence_expression(*subject, None)?,
        Watch::Condition { kind, min_severity } => {
            let kind = kind.map(|kind| format!("condition=\"{kind}\""));
            let matchers = join_matchers(kind, selector);
            let holds = match min_severity {
                Severity::Notice => format!("{} == 1", add_matchers(CONDITION, &matchers)),
                // `/metrics` exports notice as 1, warning as 2 and critical as 3.
                least => format!("{} >= {}", add_matchers(SEVERITY, &matchers), least.rank()),
            };
            format!("max without (condition) ({holds})")
        }
        Watch::LimitedBy(cause) => limited_expression(&rule.check, *cause, selector),
    })
}

/// Returns an expression for a cause with the largest share of the rule's `for`. The time that the
/// counters do not cover must be at most as long as the gaps that gpumon accepts. No cause limits a
/// GPU whose counters do not grow.
fn limited_expression(check: &RuleCheck, cause: LimitClass, selector: &str) -> String {
    let own = format!("cause=\"{}\"", cause.name());
    let window = format_duration(check.for_ms.max(MIN_LIMITED_WINDOW_MS));
    let [own, all] = [join_matchers(Some(own), selector), selector.to_owned()]
        .map(|matchers| add_matchers(LIMITED, &matchers))
        .map(|series| format!("without (cause) (increase({series}[{window}]))"));
    let covered = Duration::from_millis(check.for_ms.saturating_sub(MAX_LIMITS_AGE_MS));
    format!(
        "max {own} >= max {all} and sum {all} > {}",
        covered.as_secs_f64()
    )
}

fn value_expression(
    rule: &Rule,
    subject: WatchedField,
    bound: Threshold,
    rate: Option<Rate>,
    selector: &str,
) -> Result<String, String> {
    let own = add_matchers(metric_name(subject)?, selector);
    let unit = field_of!(subject, unit);
    let (value, base): (String, Box<dyn Fn(f64) -> f64>) = match (rate, bound.is_share) {
        (Some(Rate { per, over_ms }), _) => {
            let function = if field_of!(subject, kind) == Kind::Counter {
                "rate"
            } else {
                "deriv"
            };
            let value = format!(
                "{function}({own}[{}]) * {}",
                format_duration(over_ms),
                per.length_in_seconds()
            );
            (value, Box::new(move |value| to_base_unit(unit, value)))
        }
        (None, true) => (
            format!("{own} / {}", add_matchers(limit_metric(subject)?, selector)),
            Box::new(|share| share / 100.0),
        ),
        (None, false) => (own, Box::new(move |value| to_base_unit(unit, value))),
    };
    let side = if bound.is_above { '>' } else { '<' };
    let fires = format!("{value} {side} {}", base(bound.value));
    if bound.clear.total_cmp(&bound.value).is_eq() {
        return Ok(fires);
    }
    let on = if subject.is_host_field() {
        ON_HOST
    } else {
        ON_GPU
    };
    let firing = format!(
        "ALERTS{{alertname={},alertstate=\"firing\"}}",
        quote_yaml(&rule.name)
    );
    Ok(format!(
        "{fires} or ({value} {side} {} and {on} {firing})",
        base(bound.clear)
    ))
}

/// Converts a value to Prometheus' base unit. The result is rounded to 13 significant digits, which
/// removes the rounding error of the conversion.
fn to_base_unit(unit: Unit, value: f64) -> f64 {
    let base = unit.to_base_unit(value);
    format!("{base:.12e}").parse().unwrap_or(base)
}

fn metric_name(subject: WatchedField) -> Result<&'static str, String> {
    let name = field_of!(subject, prometheus);
    name.ok_or_else(|| format!("/metrics has no metric for {}", subject.id()))
}

fn limit_metric(subject: WatchedField) -> Result<&'static str, String> {
    fn limit_field_metric<S>(
        field: &Field<S>,
        fields: &'static [Field<S>],
    ) -> Option<&'static str> {
        let Some(Limit::Field(id)) = field.limit else {
            return None;
        };
        fields.iter().find(|field| field.id == id)?.prometheus
    }
    let name = match subject {
        WatchedField::Gpu(field) => limit_field_metric(field, GPU_FIELDS),
        WatchedField::Host(field) => limit_field_metric(field, HOST_FIELDS),
    };
    name.ok_or_else(|| {
        format!(
            "/metrics has no metric for the limit of {}; use an absolute value instead of %",
            subject.id()
        )
    })
}

/// A metric label with its value, which identifies one of the rule's GPUs.
struct Label {
    name: &'static str,
    value: String,
}

const INDEX: &str = "gpu";
const UUID: &str = "uuid";

fn build_gpu_label(id: &GpuName) -> Result<Label, String> {
    let name = match id {
        GpuName::Index(_) => INDEX,
        GpuName::Uuid(_) => UUID,
        GpuName::OfVendor(..) | GpuName::BusId(_) => {
            return Err(format!(
                "the metrics do not identify the GPU {id}; use its index or UUID"
            ));
        }
    };
    let value = id.to_string();
    Ok(Label { name, value })
}

/// Returns one selector for the GPUs identified by index and one for the GPUs identified by UUID.
/// If `gpus` is empty, returns a single empty selector, which matches all GPUs.
fn gpu_selectors(gpus: &[GpuName]) -> Result<Vec<String>, String> {
    let labels = gpus
        .iter()
        .map(build_gpu_label)
        .collect::<Result<Vec<_>, _>>()?;
    let named = |name: &str, behind: &str| {
        let own = labels.iter().filter(|label| label.name == name);
        let values: Vec<_> = own.map(|label| label.value.clone() + behind).collect();
        values.join("|")
    };
    let (indices, uuids) = (named(INDEX, ""), named(UUID, ".*"));
    Ok(match (indices.as_str(), uuids.as_str()) {
        ("", "") => vec![String::new()],
        (indices, "") => vec![format!("gpu=~\"{indices}\"")],
        ("", uuids) => vec![format!("uuid=~\"(?i:{uuids})\"")],
        (indices, uuids) => vec![
            format!("gpu=~\"{indices}\""),
            format!("uuid=~\"(?i:{uuids})\""),
        ],
    })
}

fn format_matcher(Label { name, value }: &Label) -> String {
    if *name == INDEX {
        format!("gpu=\"{value}\"")
    } else {
        format!("uuid=~\"(?i:{value}.*)\"")
    }
}

/// Joins a matcher and a selector, which may be empty.
fn join_matchers(matcher: Option<String>, selector: &str) -> String {
    let selector = (!selector.is_empty()).then(|| selector.to_owned());
    let both: Vec<_> = matcher.into_iter().chain(selector).collect();
    both.join(",")
}

fn add_matchers(metric: &str, matchers: &str) -> String {
    if matchers.is_empty() {
        metric.to_owned()
    } else {
        format!("{metric}{{{matchers}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export_rule(rule: &str) -> Result<String, String> {
        let rules = AlertRules::from_toml(&format!("[[rule]]\nname = \"a\"\n{rule}"), "f").unwrap();
        build_expression(&rules.rules[0])
    }

    #[test]
    fn rules_become_expressions_in_base_units() {
        for (rule, expected) in [
            (
                "field = \"utilization.gpu_percent\"\nbelow = 30",
                "gpumon_gpu_utilization_ratio < 0.3",
            ),
            (
                "field = \"clocks.sm_mhz\"\nbelow = \"1.2 GHz\"\ngpus = [0, 3]",
                "gpumon_gpu_sm_clock_hertz{gpu=~\"0|3\"} < 1200000000",
            ),
            (
                "field = \"memory.used_bytes\"\nabove = \"90 %\"",
                "gpumon_gpu_memory_used_bytes / gpumon_gpu_memory_total_bytes > 0.9",
            ),
            (
                "field = \"temperature.gpu_celsius\"\nabove = 85\nclear_below = 80",
                "gpumon_gpu_temperature_celsius > 85 or (gpumon_gpu_temperature_celsius > 80 and \
                 on (job, instance, gpu, uuid) ALERTS{alertname=\"a\",alertstate=\"firing\"})",
            ),
            (
                "field = \"power.energy_joules_total\"\nabove = \"40 kJ\"\nper = \"minute\"\nover \
                 = \"5m\"",
                "rate(gpumon_gpu_energy_joules_total[300s]) * 60 > 40000",
            ),
            (
                "field = \"temperature.gpu_celsius\"\nabove = 5\nper = \"minute\"",
                "deriv(gpumon_gpu_temperature_celsius[60s]) * 60 > 5",
            ),
            (
                "condition = \"row_remap\"\nmin_severity = \"warning\"\ngpus = [\"GPU-1A\"]",
                "max without (condition) \
                 (gpumon_condition_severity{condition=\"row_remap\",uuid=~\"(?i:gpu-1a.*)\"} >= 2)",
            ),
            (
                "condition = \"any\"",
                "max without (condition) (gpumon_condition == 1)",
            ),
            (
                "condition = \"xid\"\nmin_severity = \"critical\"",
                "max without (condition) (gpumon_condition_severity{condition=\"xid\"} >= 3)",
            ),
            (
                "limited_by = \"host\"",
                "max without (cause) \
                 (increase(gpumon_gpu_limited_seconds_total{cause=\"host\"}[120s])) >= max without \
                 (cause) (increase(gpumon_gpu_limited_seconds_total[120s])) and sum without \
                 (cause) (increase(gpumon_gpu_limited_seconds_total[120s])) > 0",
            ),
            (
                "limited_by = \"power\"\ngpus = [1]\nfor = \"10m\"",
                "max without (cause) \
                 (increase(gpumon_gpu_limited_seconds_total{cause=\"power\",gpu=~\"1\"}[600s])) >= \
                 max without (cause) (increase(gpumon_gpu_limited_seconds_total{gpu=~\"1\"}[600s])) \
                 and sum without (cause) \
                 (increase(gpumon_gpu_limited_seconds_total{gpu=~\"1\"}[600s])) > 570",
            ),
            (
                "absent = true\ngpus = [0]",
                "gpumon_gpu_up{gpu=\"0\"} == 0 or ((label_replace(gpumon_collector_up, \"gpu\", \
                 \"0\", \"\", \"\") unless on (job, instance) gpumon_gpu_up{gpu=\"0\"}) unless on \
                 (job, instance) (gpumon_collector_state{state=~\"paused|starting\"} == 1))",
            ),
            (
                "absent = true\nfield = \"host.memory.used_bytes\"",
                "(gpumon_collector_up unless on (job, instance) gpumon_host_memory_used_bytes) \
                 unless on (job, instance) (gpumon_collector_state{state=~\"paused|starting\"} == \
                 1)",
            ),
        ] {
            assert_eq!(export_rule(rule).as_deref(), Ok(expected), "{rule}");
        }
    }

    #[test]
    fn rules_without_prometheus_equivalent_are_listed_in_notes() {
        let rules = "[[rule]]\nname = \"clock\"\nfield = \"clocks.sm_mhz\"\nbelow = \"50 \
                     %\"\n[[rule]]\nname = \"disk\"\nfield = \
                     \"host.disk.read_bytes_per_second\"\nabove = \"1 GB/s\"\n[[rule]]\nname = \
                     \"card\"\ncondition = \"xid\"\ngpus = [\"amd:0\"]\n[[rule]]\nname = \
                     \"night\"\ncondition = \"xid\"\nsilence = [\"22:00-07:00\"]\n";
        let exported = export(&AlertRules::from_toml(rules, "f").unwrap());
        assert!(exported.notes[0].starts_with(
            "rule clock is not exported: /metrics has no metric for the limit of clocks.sm_mhz"
        ));
        assert!(
            exported.notes[1].starts_with(
                "rule disk is not exported: /metrics has no metric for host.disk.read"
            )
        );
        assert!(
            exported.notes[2]
                .starts_with("rule card is not exported: the metrics do not identify the GPU")
                && exported.notes[2].contains("amd:0; use its index or UUID"),
            "{:?}",
            exported.notes
        );
        assert!(
            exported.notes[3].contains("Alertmanager") && exported.notes.len() == 4,
            "{:?}",
            exported.notes
        );
        assert!(
            exported.text.contains("# rule clock is not exported")
                && exported.text.contains("- alert: \"night\"")
        );
        assert_eq!(
            export(&AlertRules::default()).text.lines().last(),
            Some("groups: []")
        );
    }
}
