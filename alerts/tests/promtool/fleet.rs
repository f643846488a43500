//! Checks the exported rules in one Prometheus that scrapes several nodes. A rule must fire for the
//! same nodes and GPUs as in gpumon's own evaluation. States and conditions are exported in both
//! supported forms: series that exist only while the state is active, and series that always exist
//! and have the value 0 or 1.

use std::{collections::BTreeSet, fmt::Write, fs};

use gpumon_alerts::{
    evaluate::{EvaluationInput, Evaluator},
    prometheus,
    rules::AlertRules,
};
use gpumon_probe::{
    derive::ConditionSettings,
    host::HostReader,
    model::{
        Absence, Condition, ConditionKind, GpuSample, Health, Inventory, Reading, Sample, Severity,
        fields::GPU_FIELDS,
    },
};
use jiff::tz::TimeZone;

use super::{START_MS, make_inventory, run_promtool};

const NODES: [&str; 2] = ["a", "b"];
const SECONDS: u64 = 120;

#[derive(Clone, Copy, PartialEq)]
enum Collector {
    Running,
    Paused,
    Starting,
    Restarting,
}

const COLLECTORS: [(Collector, &str); 4] = [
    (Collector::Running, "running"),
    (Collector::Paused, "paused"),
    (Collector::Starting, "starting"),
    (Collector::Restarting, "restarting"),
];

struct Node {
    collector: Collector,
    sample: Sample,
}

struct Case {
    rule: &'static str,
    /// Whether to compare not only the nodes for which the rule fires, but also their GPUs, by
    /// index.
    by_gpu: bool,
    /// A function that receives the second and the name of the node, and modifies a node with two
    /// healthy GPUs.
    change: fn(u64, &str, &mut Node),
}

const CASES: &[Case] = &[
    Case {
        rule: "absent = true\ngpus = [0, 7]\nclear_for = \"0s\"",
        by_gpu: true,
        change: |second, node, it| set_gpu_lost(it, 0, node == "a" && (40..60).contains(&second)),
    },
    Case {
        rule: "absent = true\ngpus = [\"GPU-A1\"]\nclear_for = \"0s\"",
        by_gpu: false,
        change: |second, node, it| set_gpu_lost(it, 1, node == "a" && (40..60).contains(&second)),
    },
    Case {
        rule: "absent = true\nfor = \"5s\"\nclear_for = \"5s\"",
        by_gpu: false,
        change: interrupt_collectors,
    },
    Case {
        rule: "absent = true\nclear_for = \"0s\"\ngpus = [0, 1]",
        by_gpu: true,
        change: interrupt_collectors,
    },
    Case {
        rule: "absent = true\nclear_for = \"0s\"",
        by_gpu: false,
        change: |second, node, it| {
            if node == "b" && (30..60).contains(&second) {
                it.sample.gpus.clear();
            }
        },
    },
    Case {
        rule: "absent = true\nfield = \"power.draw_watts\"\nclear_for = \"0s\"",
        by_gpu: false,
        change: |second, node, it| {
            interrupt_collectors(second, node, it);
            if node == "a" && (10..20).contains(&second) {
                it.sample.gpus[1].power.draw_watts = Reading::Absent(Absence::NotSupported);
            }
            if node == "a" && (40..50).contains(&second) {
                let health = Health::Asleep { since_ms: 1 };
                it.sample.gpus[1] = GpuSample::new_absent(
                    1,
                    Some("GPU-a1".into()),
                    START_MS,
                    health,
                    &Absence::Asleep,
                );
            }
        },
    },
    Case {
        rule: "absent = true\nfield = \"power.draw_watts\"\ngpus = [1, 5]\nclear_for = \"0s\"",
        by_gpu: true,
        change: |second, node, it| {
            if node == "b" && (10..20).contains(&second) {
                it.sample.gpus[1].power.draw_watts = Reading::Absent(Absence::NotSupported);
            }
        },
    },
    Case {
        rule: "absent = true\nfield = \"host.memory.used_bytes\"\nclear_for = \"0s\"",
        by_gpu: false,
        change: |second, node, it| {
            interrupt_collectors(second, node, it);
            if node == "a" && (10..20).contains(&second) {
                it.sample.host.memory.used_bytes = Reading::Absent(Absence::NotSupported);
            }
        },
    },
    Case {
        rule: "field = \"utilization.gpu_percent\"\nbelow = 30\nclear_above = 50\nfor = \
               \"5s\"\nclear_for = \"5s\"\ngpus = [1]",
        by_gpu: true,
        change: |second, node, it| {
            let percent = match second {
                10..30 => 20.0,
                30..60 => 40.0,
                70..100 => 45.0,
                _ => 90.0,
            };
            let number = usize::from(node == "b");
            it.sample.gpus[number].utilization.gpu_percent = Reading::Now(percent);
        },
    },
    Case {
        rule: "field = \"temperature.gpu_celsius\"\nabove = 85\nclear_for = \"0s\"\ngpus = \
               [\"gpu-B0\", 1]",
        by_gpu: true,
        change: |second, _, it| {
            let celsius = if (20..40).contains(&second) {
                90.0
            } else {
                40.0
            };
            it.sample
                .gpus
                .iter_mut()
                .for_each(|gpu| gpu.temperature.gpu_celsius = Reading::Now(celsius));
        },
    },
    Case {
        rule: "condition = \"throttled\"\nmin_severity = \"warning\"\nclear_for = \"0s\"\ngpus = \
               [\"GPU-b\"]",
        by_gpu: true,
        change: |second, _, it| {
            let severity = if second < 60 {
                Severity::Notice
            } else {
                Severity::Warning
            };
            let kind = ConditionKind::Throttled {
                reasons: Vec::new(),
                limit_watts: None,
                gpu_celsius: None,
            };
            let text = "Clocks reduced.".to_owned();
            it.sample.gpus[1].conditions = match second {
                30..50 | 70..90 => vec![Condition {
                    since_ms: 1,
                    severity,
                    text,
                    kind,
                }],
                _ => Vec::new(),
            };
        },
    },
];

/// Simulates a restart of the collector of node `b`, and a pause of the collector of node `a`.
fn interrupt_collectors(second: u64, node: &str, it: &mut Node) {
    it.collector = match (node, second) {
        ("b", 30..60) => Collector::Restarting,
        ("a", 70..90) => Collector::Paused,
        ("a", 90..93) => Collector::Starting,
        _ => Collector::Running,
    };
}

fn set_gpu_lost(it: &mut Node, number: usize, is_lost: bool) {
    if is_lost {
        let GpuSample {
            index, uuid, at_ms, ..
        } = it.sample.gpus[number].clone();
        it.sample.gpus[number] = GpuSample::new_absent(
            index,
            uuid,
            at_ms,
            Health::Lost { since_ms: 1 },
            &Absence::GpuLost,
        );
    }
}

fn build_node(
    second: u64,
    name: &str,
    host: &mut HostReader,
    change: fn(u64, &str, &mut Node),
) -> Node {
    let at_ms = START_MS + second * 1000;
    let gpu = |index: u32| {
        let uuid = Some(format!("GPU-{name}{index}"));
        let mut gpu = GpuSample::new_absent(index, uuid, at_ms, Health::Ok, &Absence::NotSupported);
        gpu.power.draw_watts = Reading::Now(300.0);
        gpu.utilization.gpu_percent = Reading::Now(90.0);
        gpu
    };
    let sample = Sample {
        seq: second,
        at_ms,
        interval_ms: 1000,
        gpus: vec![gpu(0), gpu(1)],
        host: host.read(),
    };
    let mut node = Node {
        collector: Collector::Running,
        sample,
    };
    node.sample.host.memory.used_bytes = Reading::Now(50 << 30);
    change(second, name, &mut node);
    node
}

/// Returns the nodes and GPUs for which the rule fires in each second, according to gpumon's own
/// evaluation.
fn evaluate_nodes(
    rules: &AlertRules,
    nodes: &[(&str, Vec<Node>)],
    by_gpu: bool,
) -> Vec<BTreeSet<(String, Option<u32>)>> {
    let mut fire = vec![BTreeSet::new(); SECONDS as usize];
    for (name, seconds) in nodes {
        let mut evaluator = Evaluator::new(rules, TimeZone::UTC, ConditionSettings::default());
        let template: Inventory = make_inventory();
        let mut known = template.clone();
        for (second, Node { collector, sample }) in seconds.iter().enumerate() {
            let is_read = *collector == Collector::Running;
            if is_read {
                known.gpus = sample
                    .gpus
                    .iter()
                    .map(|gpu| {
                        let mut board = template.gpus[0].clone();
                        (board.index, board.uuid) = (gpu.index, gpu.uuid.clone());
                        board
                    })
                    .collect();
            }
            let readings = EvaluationInput {
                sample: is_read.then_some(sample),
                inventory: Some(&known),
                is_watched: is_read || *collector == Collector::Restarting,
                started_ms: 0,
            };
            evaluator.evaluate_rules(&readings, sample.at_ms);
            let firing = evaluator.firing_alerts().into_iter();
            let place = firing.map(|it| {
                (
                    (*name).to_owned(),
                    it.gpu.filter(|_| by_gpu).map(|gpu| gpu.index),
                )
            });
            fire[second].extend(place);
        }
    }
    fire
}

/// Returns the series that `/metrics` would export for a node. An inactive state is 0 if
/// `with_zeros` is set, and absent otherwise.
fn metric_series(name: &str, seconds: &[Node], with_zeros: bool) -> String {
    let mut text = String::new();
    let mut add = |series: String, read: &dyn Fn(&Node) -> Option<f64>| {
        let values: Vec<_> = seconds.iter().map(read).collect();
        let word =
            |value: &Option<f64>| value.map_or("stale".to_owned(), |value| value.to_string());
        let values = values.iter().map(word).collect::<Vec<_>>().join(" ");
        writeln!(
            text,
            "      - series: '{series}'\n        values: '{values}'"
        )
        .unwrap();
    };
    let state = move |is: bool| {
        if is {
            Some(1.0)
        } else {
            Some(0.0).filter(|_| with_zeros)
        }
    };
    let host = format!("job=\"gpumon\",instance=\"{name}\"");
    let is_read = |node: &Node| node.collector == Collector::Running;
    add(format!("gpumon_collector_up{{{host}}}"), &|node| {
        Some(f64::from(u8::from(is_read(node))))
    });
    for (collector, word) in COLLECTORS {
        let series = format!("gpumon_collector_state{{state=\"{word}\",{host}}}");
        add(series, &|node| state(node.collector == collector));
    }
    add(
        format!("gpumon_host_memory_used_bytes{{{host}}}"),
        &|node| {
            node.sample
                .host
                .memory
                .used_bytes
                .value()
                .filter(|_| is_read(node))
                .map(|bytes| *bytes as f64)
        },
    );
    for index in 0..2 {
        let labels = format!("gpu=\"{index}\",uuid=\"GPU-{name}{index}\",{host}");
        let gpu = |node: &Node| {
            node.sample
                .gpus
                .iter()
                .find(|gpu| gpu.index == index && is_read(node))
                .cloned()
        };
        for field in GPU_FIELDS {
            let Some(metric) = field.prometheus else {
                continue;
            };
            add(format!("{metric}{{{labels}}}"), &|node| {
                let gpu = gpu(node).filter(|gpu| gpu.health == Health::Ok)?;
                field
                    .access
                    .value(&gpu)
                    .map(|value| field.unit.to_base_unit(value))
            });
        }
        add(format!("gpumon_gpu_up{{{labels}}}"), &|node| {
            let is_up = matches!(gpu(node)?.health, Health::Ok | Health::Asleep { .. });
            Some(f64::from(u8::from(is_up)))
        });
        for word in ["ok", "asleep", "lost"] {
            let series = format!("gpumon_gpu_state{{state=\"{word}\",{labels}}}");
            add(series, &|node| state(gpu(node)?.health.json_name() == word));
        }
        let severity = |node: &Node| {
            Some(
                gpu(node)?
                    .conditions
                    .iter()
                    .map(|it| it.severity as u8 + 1)
                    .max()
                    .unwrap_or(0),
            )
        };
        add(
            format!("gpumon_condition{{condition=\"throttled\",{labels}}}"),
            &|node| state(severity(node)? > 0),
        );
        add(
            format!("gpumon_condition_severity{{condition=\"throttled\",{labels}}}"),
            &|node| Some(f64::from(severity(node)?)).filter(|severity| *severity > 0.0),
        );
    }
    text
}

#[test]
fn exported_rule_fires_like_gpumon_on_several_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = HostReader::new();
    for (
        number,
        Case {
            rule,
            by_gpu,
            change,
        },
    ) in CASES.iter().enumerate()
    {
        let rules =
            AlertRules::from_toml(&format!("[[rule]]\nname = \"a\"\n{rule}"), "case").unwrap();
        let nodes = NODES.map(|name| {
            (
                name,
                (0..SECONDS)
                    .map(|at| build_node(at, name, &mut host, *change))
                    .collect(),
            )
        });
        let fire = evaluate_nodes(&rules, &nodes, *by_gpu);
        let changes = fire.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes >= 2, "{rule}: it fires and resolves");
        let exported = prometheus::export(&rules);
        assert_eq!(exported.notes, [""; 0], "{rule}");
        fs::write(
            folder.path().join(format!("rules{number}.yml")),
            exported.text,
        )
        .unwrap();
        for with_zeros in [false, true] {
            let mut text = format!(
                "rule_files: [rules{number}.yml]\nevaluation_interval: 1s\ntests:\n  - interval: \
                 1s\n    input_series:\n"
            );
            for (name, seconds) in &nodes {
                text += &metric_series(name, seconds, with_zeros);
            }
            text += "    promql_expr_test:\n";
            let by = if *by_gpu { "instance, gpu" } else { "instance" };
            for (second, places) in fire.iter().enumerate() {
                let expression = format!("max by ({by}) (ALERTS{{alertstate=\"firing\"}})");
                let samples = places.iter().map(|(node, gpu)| {
                    let gpu = gpu
                        .map(|gpu| format!(", gpu=\"{gpu}\""))
                        .unwrap_or_default();
                    format!("{{labels: '{{instance=\"{node}\"{gpu}}}', value: 1}}")
                });
                let samples = samples.collect::<Vec<_>>().join(", ");
                writeln!(
                    text,
                    "      - expr: '{expression}'\n        eval_time: {second}s\n        \
                     exp_samples: [{samples}]"
                )
                .unwrap();
            }
            let tested = format!("fleet{number}.yml");
            fs::write(folder.path().join(&tested), text).unwrap();
            run_promtool(&["test", "rules", &tested], folder.path());
        }
    }
}
