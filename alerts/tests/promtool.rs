//! Checks with Prometheus' promtool that the exported rules fire and resolve in the same second as
//! in gpumon's own evaluation of the same timeline. For rules with `limited_by`, a few seconds of
//! difference are allowed.

use std::{fmt::Write, fs, path::Path, process::Command};

use gpumon_alerts::{
    evaluate::{EvaluationInput, Evaluator},
    prometheus,
    rules::AlertRules,
};
use gpumon_probe::{
    derive::ConditionSettings,
    host::HostReader,
    model::{
        Absence, Condition, ConditionKind, Confidence, EventKind, GpuSample, Health, Inventory,
        LimitClass, LimitEvidence, LimitSums, Limits, Reading, Sample, Severity,
        fields::GPU_FIELDS,
    },
};
use jiff::tz::TimeZone;

#[path = "promtool/fleet.rs"]
mod fleet;

const SECONDS: u64 = 240;
const START_MS: u64 = 1_764_547_200_000;

/// The allowed difference for a rule with `limited_by`, in seconds. Prometheus estimates the growth
/// of counters at the edges of the time `for`.
const LIMITED_TOLERANCE: u64 = 3;

/// A rule with the timeline for testing it.
struct Case {
    rule: &'static str,
    /// A function that receives the second, and modifies the sample of a healthy GPU.
    change: fn(u64, &mut Sample),
}

const CASES: &[Case] = &[
    Case {
        rule: "field = \"temperature.gpu_celsius\"\nabove = 85\nfor = \"20s\"\nclear_below = \"80 \
               C\"\nclear_for = \"10s\"",
        change: |second, sample| {
            let celsius = match second {
                20..35 => 90.0,
                50..100 => 86.0,
                100..140 => 82.0,
                145..=150 => 81.0,
                170..200 => 84.0,
                _ => 40.0,
            };
            sample.gpus[0].temperature.gpu_celsius = Reading::Now(celsius);
        },
    },
    Case {
        rule: "field = \"utilization.gpu_percent\"\nbelow = 30\nclear_for = \"0s\"\nmessage = \
               \"Look {{ here }}: 5 %\"",
        change: |second, sample| {
            sample.gpus[0].utilization.gpu_percent = Reading::Now(if (60..90).contains(&second) {
                29.9
            } else {
                30.0
            });
        },
    },
    Case {
        rule: "field = \"memory.used_bytes\"\nabove = \"90 %\"\nclear_below = \"50 %\"\nfor = \
               \"5s\"",
        change: |second, sample| {
            sample.gpus[0].memory.total_bytes = Reading::Now(80 << 30);
            let gib = match second {
                30..60 => 79,
                60..80 => 41,
                _ => 30,
            };
            sample.gpus[0].memory.used_bytes = Reading::Now(gib << 30);
        },
    },
    Case {
        rule: "field = \"memory.used_bytes\"\nabove = \"1 GiB\"\nper = \"minute\"\nover = \
               \"60s\"\nfor = \"10s\"",
        change: |second, sample| {
            let grown = second.saturating_sub(80).min(60) * (25 << 20);
            sample.gpus[0].memory.used_bytes = Reading::Now((10 << 30) + grown);
        },
    },
    Case {
        rule: "field = \"power.energy_joules_total\"\nabove = \"30 kJ\"\nper = \"minute\"\nover = \
               \"30s\"\nclear_for = \"20s\"",
        change: |second, sample| {
            let joules = 100 * second + second.saturating_sub(90).min(60) * 600;
            sample.gpus[0].power.energy_joules_total = Reading::Now(joules as f64);
        },
    },
    Case {
        rule: "absent = true\nfor = \"15s\"\nclear_for = \"5s\"\nseverity = \"critical\"",
        change: |second, sample| {
            if (40..50).contains(&second) || (100..160).contains(&second) {
                let gpu = &mut sample.gpus[0];
                *gpu = GpuSample::new_absent(
                    0,
                    gpu.uuid.clone(),
                    gpu.at_ms,
                    Health::Lost { since_ms: 1 },
                    &Absence::GpuLost,
                );
            }
        },
    },
    Case {
        rule: "absent = true\nfield = \"power.draw_watts\"\nclear_for = \"0s\"",
        change: |second, sample| {
            if !(60..90).contains(&second) {
                sample.gpus[0].power.draw_watts = Reading::Now(300.0);
            }
        },
    },
    Case {
        rule: "condition = \"throttled\"\nmin_severity = \"warning\"\nfor = \"5s\"\nclear_for = \
               \"10s\"",
        change: |second, sample| {
            let severity = match second {
                20..40 => Severity::Notice,
                60..90 => Severity::Warning,
                90..100 => Severity::Critical,
                _ => return,
            };
            let kind = ConditionKind::Throttled {
                reasons: Vec::new(),
                limit_watts: None,
                gpu_celsius: None,
            };
            sample.gpus[0].conditions = vec![Condition {
                since_ms: 1,
                severity,
                text: "Clocks reduced.".into(),
                kind,
            }];
        },
    },
    Case {
        rule: "condition = \"any\"\nfor = \"5s\"\nclear_for = \"0s\"",
        change: |second, sample| {
            if (20..40).contains(&second) {
                let kind = ConditionKind::PageRetirementPending;
                let severity = Severity::Notice;
                sample.gpus[0].conditions = vec![Condition {
                    since_ms: 1,
                    severity,
                    text: "Pending.".into(),
                    kind,
                }];
            }
        },
    },
    Case {
        rule: "limited_by = \"host\"\nfor = \"2m\"\nclear_for = \"10s\"",
        change: |second, sample| {
            // The causes alternate. The CPU limits the GPU for two of three seconds, and before and
            // after this period for one of three seconds.
            let main = if (70..150).contains(&second) == (second % 3 != 0) {
                LimitClass::Host
            } else {
                LimitClass::Tensor
            };
            let shares = LimitClass::ALL
                .map(|class| Reading::Now(f64::from(u8::from(class == main)) * 100.0));
            let evidence = LimitEvidence::default();
            let limits = Limits::new(1000, shares, main, Confidence::High, evidence);
            sample.gpus[0].limits = Reading::Now(limits);
        },
    },
    Case {
        rule: "field = \"host.memory.used_bytes\"\nabove = \"90 %\"\nfor = \"10s\"\nclear_for = \
               \"0s\"",
        change: |second, sample| {
            let gib = if (30..70).contains(&second) { 95 } else { 50 };
            sample.host.memory.used_bytes = Reading::Now(gib << 30);
        },
    },
];

fn make_sample(second: u64, change: fn(u64, &mut Sample)) -> Sample {
    let at_ms = START_MS + second * 1000;
    let gpu = GpuSample::new_absent(
        0,
        Some("GPU-0".into()),
        at_ms,
        Health::Ok,
        &Absence::NotSupported,
    );
    let mut host = HostReader::new().read();
    host.memory.total_bytes = Reading::Now(100 << 30);
    host.memory.used_bytes = Reading::Now(50 << 30);
    let mut sample = Sample {
        seq: second,
        at_ms,
        interval_ms: 1000,
        gpus: vec![gpu],
        host,
    };
    change(second, &mut sample);
    sample
}

fn make_inventory() -> Inventory {
    let options = gpumon_probe::sampler::Options::new(
        std::time::Duration::from_secs(1),
        gpumon_probe::owner::CommandLines::Own,
    );
    let source = "sim:1"
        .parse::<gpumon_probe::vendor::SourceChoice>()
        .unwrap()
        .open(&gpumon_probe::vendor::Roots::default())
        .unwrap();
    let mut inventory = gpumon_probe::sampler::sample_once(&source, &options)
        .unwrap()
        .inventory;
    inventory.gpus[0].uuid = Some("GPU-0".into());
    inventory
}

/// Returns the spans, in seconds, in which the alert fires in gpumon's own evaluation.
fn evaluate_spans(rules: &AlertRules, change: fn(u64, &mut Sample)) -> Vec<(u64, u64)> {
    let mut evaluator = Evaluator::new(rules, TimeZone::UTC, ConditionSettings::default());
    let inventory = make_inventory();
    let mut spans = Vec::new();
    for second in 0..SECONDS {
        let sample = make_sample(second, change);
        let readings = EvaluationInput {
            sample: Some(&sample),
            inventory: Some(&inventory),
            is_watched: true,
            started_ms: 0,
        };
        for event in evaluator.evaluate_rules(&readings, sample.at_ms).events {
            match event.what {
                EventKind::AlertFiring(_) => spans.push((second, SECONDS)),
                EventKind::AlertResolved(_) => spans.last_mut().unwrap().1 = second,
                other => panic!("{other:?}"),
            }
        }
    }
    spans
}

/// Returns the series that `/metrics` would export for a GPU whose samples are modified by
/// `change`, in promtool's format. Metrics that no rule uses are left out.
fn metric_series(change: fn(u64, &mut Sample)) -> Vec<(String, String)> {
    let samples: Vec<_> = (0..SECONDS)
        .map(|second| make_sample(second, change))
        .collect();
    let labels = "gpu=\"0\",uuid=\"GPU-0\",job=\"gpumon\",instance=\"a\"";
    let mut all = Vec::new();
    let mut add = |name: String, read: &dyn Fn(&Sample) -> Option<f64>| {
        let values: Vec<_> = samples.iter().map(read).collect();
        if values.iter().any(Option::is_some) {
            let word =
                |value: &Option<f64>| value.map_or("stale".to_owned(), |value| value.to_string());
            all.push((name, values.iter().map(word).collect::<Vec<_>>().join(" ")));
        }
    };
    for field in GPU_FIELDS {
        let Some(name) = field.prometheus else {
            continue;
        };
        add(format!("{name}{{{labels}}}"), &|sample| {
            let gpu = Some(&sample.gpus[0]).filter(|gpu| gpu.health == Health::Ok)?;
            field
                .access
                .value(gpu)
                .map(|value| field.unit.to_base_unit(value))
        });
    }
    add(format!("gpumon_gpu_up{{{labels}}}"), &|sample| {
        Some(f64::from(u8::from(sample.gpus[0].health == Health::Ok)))
    });
    for state in Health::TAGS {
        add(
            format!("gpumon_gpu_state{{state=\"{state}\",{labels}}}"),
            &|sample| {
                Some(f64::from(u8::from(
                    sample.gpus[0].health.tag() == Some(state),
                )))
            },
        );
    }
    for kind in ConditionKind::TAGS {
        let of = |sample: &Sample| {
            let lasting = sample.gpus[0]
                .conditions
                .iter()
                .filter(|it| it.kind.tag() == Some(kind));
            lasting.map(|it| it.severity as u8).max()
        };
        add(
            format!("gpumon_condition{{condition=\"{kind}\",{labels}}}"),
            &|sample| Some(f64::from(u8::from(of(sample).is_some()))),
        );
        add(
            format!("gpumon_condition_severity{{condition=\"{kind}\",{labels}}}"),
            &|sample| of(sample).map(|severity| f64::from(severity + 1)),
        );
    }
    let mut sums = LimitSums::default();
    let limited: Vec<Vec<_>> = samples
        .iter()
        .map(|sample| {
            if let Reading::Now(limits) = &sample.gpus[0].limits {
                sums.add(limits, limits.window_ms as f64);
            }
            sums.seconds().collect()
        })
        .collect();
    for class in LimitClass::ALL {
        let name = class.name();
        add(
            format!("gpumon_gpu_limited_seconds_total{{cause=\"{name}\",{labels}}}"),
            &|sample| {
                let mut seconds = limited[sample.seq as usize].iter();
                seconds.find_map(|(known, seconds)| (*known == class).then_some(*seconds))
            },
        );
    }
    let host = "job=\"gpumon\",instance=\"a\"";
    add(
        format!("gpumon_host_memory_used_bytes{{{host}}}"),
        &|sample| {
            sample
                .host
                .memory
                .used_bytes
                .value()
                .map(|bytes| *bytes as f64)
        },
    );
    add(
        format!("gpumon_host_memory_total_bytes{{{host}}}"),
        &|sample| {
            sample
                .host
                .memory
                .total_bytes
                .value()
                .map(|bytes| *bytes as f64)
        },
    );
    all
}

fn run_promtool(arguments: &[&str], folder: &Path) {
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "promtool cannot be run ({error}): install it with `python3 tools/need.py \
                promtool`, then try again"
            )
        });
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
}

#[test]
fn exported_rule_fires_and_resolves_like_gpumon_alert() {
    let folder = tempfile::tempdir().unwrap();
    for (number, Case { rule, change }) in CASES.iter().enumerate() {
        let rules =
            AlertRules::from_toml(&format!("[[rule]]\nname = \"a \\\"b\\\"\"\n{rule}"), "case")
                .unwrap();
        let spans = evaluate_spans(&rules, *change);
        assert!(!spans.is_empty(), "{rule}: it fires");
        let exported = prometheus::export(&rules);
        assert_eq!(exported.notes, [""; 0], "{rule}");
        let is_of_host = rule.contains("host.");
        let severity = if rule.contains("critical") {
            "critical"
        } else {
            "warning"
        };
        let (file, tested) = (format!("rules{number}.yml"), format!("test{number}.yml"));
        fs::write(folder.path().join(&file), &exported.text).unwrap();
        let mut text = format!(
            "rule_files: [{file}]\nevaluation_interval: 1s\ntests:\n  - interval: 1s\n    \
             input_series:\n"
        );
        for (name, values) in metric_series(*change) {
            writeln!(text, "      - series: '{name}'\n        values: '{values}'").unwrap();
        }
        text.push_str("    alert_rule_test:\n");
        let mut check = |second: u64, fires: bool| {
            writeln!(
                text,
                "      - eval_time: {second}s\n        alertname: 'a \"b\"'"
            )
            .unwrap();
            if !fires {
                text.push_str("        exp_alerts: []\n");
                return;
            }
            let gpu = if is_of_host {
                ""
            } else {
                "gpu: '0', uuid: GPU-0, "
            };
            writeln!(
                text,
                "        exp_alerts:\n          - exp_labels: {{{gpu}job: gpumon, instance: a, \
                 severity: {severity}}}"
            )
            .unwrap();
            let place = if is_of_host { "" } else { "GPU 0: " };
            let reported = gpumon_alerts::wording::describe_check(&rules.rules[0].check);
            let message = rules.rules[0]
                .message
                .as_ref()
                .map(|text| format!(", description: '{text}'"));
            let message = message.unwrap_or_default();
            writeln!(
                text,
                "            exp_annotations: {{summary: '{place}{reported}'{message}}}"
            )
            .unwrap();
        };
        let tolerance = if rule.contains("limited_by") {
            LIMITED_TOLERANCE
        } else {
            0
        };
        for (from, to) in &spans {
            check(from - 1 - tolerance, false);
            check(from + tolerance, true);
            if *to < SECONDS {
                check(to - 1 - tolerance, true);
                check(to + tolerance, false);
            }
        }
        fs::write(folder.path().join(&tested), &text).unwrap();
        run_promtool(&["check", "rules", &file], folder.path());
        run_promtool(&["test", "rules", &tested], folder.path());
    }
}

#[test]
fn example_file_is_valid_for_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/alerts.toml"))
            .unwrap();
    // The TOML lines in the example file are commented out, so the test removes the comment
    // markers.
    let active = text
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    let rules = AlertRules::from_toml(&active, "deploy/alerts.toml").unwrap();
    assert!(
        rules.rules.len() >= 8 && rules.receivers.len() >= 2,
        "{rules:?}"
    );
    assert_eq!(
        AlertRules::from_toml(&text, "deploy/alerts.toml").unwrap(),
        AlertRules::default()
    );
    fs::write(
        folder.path().join("rules.yml"),
        prometheus::export(&rules).text,
    )
    .unwrap();
    run_promtool(&["check", "rules", "rules.yml"], folder.path());
}
