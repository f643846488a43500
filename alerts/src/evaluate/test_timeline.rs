//! A timeline of GPU samples that a test defines tick by tick.

use gpumon_probe::{
    derive::ConditionSettings,
    model::{Absence, EventKind, Gpu, GpuSample, Health, HostSample, Inventory, Reading, Sample},
};
use jiff::tz::TimeZone;
use serde_json::json;

use super::{EvaluationInput, Evaluator};
use crate::{rules::AlertRules, wording::AlertStatus};

/// The start of every timeline: midnight in UTC, which is the time zone of the tests.
pub(super) const START_MS: u64 = 1_764_547_200_000;

pub(super) struct TestTimeline {
    pub(super) evaluator: Evaluator,
    pub(super) now_ms: u64,
    pub(super) step_ms: u64,
    started_ms: u64,
    inventory: Inventory,
    /// Events such as `133 -a 0`: the second, `+` (fired) or `-` (resolved) with the rule's name,
    /// and the GPU.
    events: Vec<String>,
    /// Notifications such as `1 -a log`: the second, `+` (fired) or `-` (resolved) with the rule's
    /// name, and the receivers.
    notifications: Vec<String>,
}

impl TestTimeline {
    /// Creates a timeline of two GPUs with one tick per second. The header and name of a single
    /// rule can be omitted from `rules`.
    pub(super) fn new(rules: &str) -> Self {
        let rules = parse_rules(rules);
        Self {
            evaluator: Evaluator::new(&rules, TimeZone::UTC, ConditionSettings::default()),
            now_ms: START_MS,
            step_ms: 1000,
            started_ms: 0,
            inventory: make_inventory(2),
            events: Vec::new(),
            notifications: Vec::new(),
        }
    }

    pub(super) fn reload(&mut self, rules: &str) {
        self.reload_with(rules, &[]);
    }

    /// Reloads the rules. The receivers in `new_receivers` must be notified of every firing alert.
    pub(super) fn reload_with(&mut self, rules: &str, new_receivers: &[&str]) {
        let new_receivers = new_receivers
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        self.evaluator
            .replace_rules(&parse_rules(rules), &new_receivers);
    }

    /// Advances the timeline by `seconds`. Both GPUs are as in [`sample`], except that `change` is
    /// applied to the first.
    pub(super) fn advance_with_gpu(
        &mut self,
        seconds: u64,
        change: impl Fn(&mut GpuSample),
    ) -> &mut Self {
        self.advance_with_sample(seconds, |sample| change(&mut sample.gpus[0]))
    }

    pub(super) fn advance_with_sample(
        &mut self,
        seconds: u64,
        change: impl Fn(&mut Sample),
    ) -> &mut Self {
        for _ in 0..seconds * 1000 / self.step_ms {
            self.now_ms += self.step_ms;
            let mut sample = make_sample(self.now_ms, 2);
            change(&mut sample);
            self.tick(Some(&sample), true);
        }
        self
    }

    /// Advances the timeline by `seconds` without samples.
    pub(super) fn advance_without_samples(&mut self, seconds: u64, is_watched: bool) -> &mut Self {
        for _ in 0..seconds * 1000 / self.step_ms {
            self.now_ms += self.step_ms;
            self.tick(None, is_watched);
        }
        self
    }

    pub(super) fn tick(&mut self, sample: Option<&Sample>, is_watched: bool) {
        let readings = EvaluationInput {
            sample,
            inventory: Some(&self.inventory),
            is_watched,
            started_ms: self.started_ms,
        };
        let outcome = self.evaluator.evaluate_rules(&readings, self.now_ms);
        let second = (self.now_ms - START_MS) / 1000;
        for event in outcome.events {
            let (sign, alert) = match event.what {
                EventKind::AlertFiring(alert) => ('+', alert),
                EventKind::AlertResolved(alert) => ('-', alert),
                other => panic!("{other:?}"),
            };
            let gpu = event
                .gpu
                .map(|gpu| format!(" {}", gpu.index))
                .unwrap_or_default();
            self.events
                .push(format!("{second} {sign}{}{gpu}", alert.rule));
        }
        for (notification, receivers) in outcome.notifications {
            let sign = if notification.status == AlertStatus::Firing {
                '+'
            } else {
                '-'
            };
            let rule = notification.alert.alert.rule;
            self.notifications
                .push(format!("{second} {sign}{rule} {}", receivers.join(",")));
        }
    }

    /// Simulates a restart of the collector, which then knows no conditions.
    pub(super) fn restart_collector(&mut self) {
        self.started_ms = self.now_ms;
    }

    /// Returns the events since the last call.
    pub(super) fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }

    /// Returns the notifications since the last call.
    pub(super) fn take_notifications(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notifications)
    }
}

fn parse_rules(rules: &str) -> AlertRules {
    let text = if rules.contains("[[") {
        rules.to_owned()
    } else {
        format!("[[rule]]\nname = \"a\"\n{rules}")
    };
    AlertRules::from_toml(&text, "test").unwrap()
}

fn make_inventory(gpus: u32) -> Inventory {
    let gpu = |index: u32| -> Gpu {
        let source = "sim:1"
            .parse::<gpumon_probe::vendor::SourceChoice>()
            .unwrap()
            .open(&gpumon_probe::vendor::Roots::default())
            .unwrap();
        let options = gpumon_probe::sampler::Options::new(
            std::time::Duration::from_secs(1),
            gpumon_probe::owner::CommandLines::Own,
        );
        let one = gpumon_probe::sampler::sample_once(&source, &options).unwrap();
        Gpu {
            index,
            vendor_index: Some(index),
            uuid: Some(format!("GPU-{index}")),
            ..one.inventory.gpus[0].clone()
        }
    };
    serde_json::from_value(json!({
        "at_ms": START_MS,
        "hostname": "gpu1",
        "platform": {
            "source": "simulated", "driver_version": "580", "nvml_version": "13", "cuda_version": "13.0",
        },
        "gpus": (0..gpus).map(gpu).collect::<Vec<_>>(),
    }))
    .unwrap()
}

/// Returns a sample of cool, idle GPUs with half of their memory in use.
pub(super) fn make_sample(at_ms: u64, gpus: u32) -> Sample {
    let gpu = |index: u32| {
        let uuid = Some(format!("GPU-{index}"));
        let mut sample =
            GpuSample::new_absent(index, uuid, at_ms, Health::Ok, &Absence::NotSupported);
        sample.temperature.gpu_celsius = Reading::Now(40.0);
        sample.memory.total_bytes = Reading::Now(80 << 30);
        sample.memory.used_bytes = Reading::Now(40 << 30);
        sample
    };
    Sample {
        seq: 0,
        at_ms,
        interval_ms: 1000,
        gpus: (0..gpus).map(gpu).collect(),
        host: make_host_sample(),
    }
}

fn make_host_sample() -> HostSample {
    let mut host = gpumon_probe::host::HostReader::new().read();
    host.memory.total_bytes = Reading::Now(100 << 30);
    host.memory.used_bytes = Reading::Now(50 << 30);
    host
}

pub(super) fn set_celsius(degrees: f64) -> impl Fn(&mut GpuSample) {
    move |sample| sample.temperature.gpu_celsius = Reading::Now(degrees)
}
