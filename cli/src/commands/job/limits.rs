//! The causes that limited a GPU while a job used it, from the history.

use std::ops::Range;

use gpumon_history::span::{ConditionSpan, DeviceSpan};
use gpumon_probe::{
    model::{
        ConditionKind, LimitClass, LimitEvidence, LimitSummary, ThrottleCause, fields::GPU_FIELDS,
    },
    stat::Window,
    units::round_to_three_digits,
};

use crate::commands::figures::{calculate_throttled_percent, find_series};

type EvidenceField = fn(&mut LimitEvidence) -> &mut Option<f64>;

/// The metrics whose means are evidence. If a field has several metrics, the largest mean counts.
const EVIDENCE: [(&str, EvidenceField); 12] = [
    ("utilization.gpu_percent", |it| &mut it.gpu_percent),
    ("activity.sm_percent", |it| &mut it.sm_percent),
    ("activity.tensor_percent", |it| &mut it.tensor_percent),
    ("activity.fp64_percent", |it| &mut it.arithmetic_percent),
    ("activity.fp32_percent", |it| &mut it.arithmetic_percent),
    ("activity.fp16_percent", |it| &mut it.arithmetic_percent),
    ("activity.integer_percent", |it| &mut it.arithmetic_percent),
    ("activity.dram_bandwidth_percent", |it| &mut it.dram_percent),
    ("pcie.rx_bytes_per_second", |it| {
        &mut it.pcie_bytes_per_second
    }),
    ("pcie.tx_bytes_per_second", |it| {
        &mut it.pcie_bytes_per_second
    }),
    ("nvlink.rx_bytes_per_second", |it| {
        &mut it.nvlink_bytes_per_second
    }),
    ("nvlink.tx_bytes_per_second", |it| {
        &mut it.nvlink_bytes_per_second
    }),
];

/// Sums up the shares of the causes and the evidence.
#[derive(Debug, Default)]
pub(super) struct LimitMeter {
    shares: [Window; LimitClass::ALL.len()],
    evidence: [Window; EVIDENCE.len()],
}

impl LimitMeter {
    /// Returns the metrics that are needed.
    pub(super) fn list_metrics() -> impl Iterator<Item = &'static str> {
        let evidence = EVIDENCE.into_iter().map(|(metric, _)| metric);
        list_share_metrics()
            .map(|(_, metric)| metric)
            .chain(evidence)
    }

    /// Adds the point at the index `place` of the device's series.
    pub(super) fn add(&mut self, device: &DeviceSpan, place: usize, time_ms: u64) {
        let add = |window: &mut Window, metric| {
            let stat = find_series(device, metric).and_then(|series| series.stat_at(place));
            if let Some(stat) = stat {
                window.merge(stat, time_ms as f64);
            }
        };
        for (cause, metric) in list_share_metrics() {
            add(&mut self.shares[cause as usize], metric);
        }
        for (window, (metric, _)) in self.evidence.iter_mut().zip(EVIDENCE) {
            add(window, metric);
        }
    }

    /// Returns the summary, or `None` if the history contains no limits. `held` contains the times
    /// in which the job used the device.
    pub(super) fn summary(
        &self,
        conditions: &[ConditionSpan],
        held: &[Range<u64>],
    ) -> Option<LimitSummary> {
        let percents = self.shares.map(|window| window.mean().unwrap_or_default());
        LimitSummary::new(LimitClass::ALL.into_iter().zip(percents), |_| {
            let mut evidence = LimitEvidence::default();
            for (window, (_, field)) in self.evidence.iter().zip(EVIDENCE) {
                if let Some(mean) = window.mean().map(round_to_three_digits) {
                    let value = field(&mut evidence);
                    *value = Some(value.map_or(mean, |known| known.max(mean)));
                }
            }
            let reduced = |cause| {
                let with_cause = conditions.iter().filter(|span| has_cause(span, cause));
                calculate_throttled_percent(with_cause, held)
            };
            evidence.too_hot = reduced(ThrottleCause::Thermal) > reduced(ThrottleCause::Power);
            evidence
        })
    }
}

/// Returns the metric of each cause's share.
fn list_share_metrics() -> impl Iterator<Item = (LimitClass, &'static str)> {
    GPU_FIELDS.iter().filter_map(|field| {
        let name = field.id.strip_prefix("limits.")?.strip_suffix("_percent")?;
        Some((LimitClass::from_name(name)?, field.id))
    })
}

fn has_cause(span: &ConditionSpan, cause: ThrottleCause) -> bool {
    matches!(
        &span.condition.kind,
        ConditionKind::Throttled { reasons, .. } if reasons.iter().any(|reason| reason.cause() == cause)
    )
}

#[cfg(test)]
mod tests {
    use gpumon_history::span::Series;
    use gpumon_probe::model::{Condition, Severity, ThrottleReason};

    use super::*;

    fn make_device(metrics: &[(&str, [f64; 2])]) -> DeviceSpan {
        let series = |values: [f64; 2]| Series {
            values: values.map(Some).into(),
            ..Series::default()
        };
        let metrics = metrics
            .iter()
            .map(|(name, values)| ((*name).to_owned(), series(*values)));
        DeviceSpan {
            metrics: metrics.collect(),
            ..DeviceSpan::default()
        }
    }

    fn summarize(metrics: &[(&str, [f64; 2])]) -> Option<LimitSummary> {
        let (device, mut meter) = (make_device(metrics), LimitMeter::default());
        meter.add(&device, 0, 30_000);
        meter.add(&device, 1, 10_000);
        meter.summary(&[], &[])
    }

    #[test]
    fn every_cause_has_a_metric() {
        let causes: Vec<_> = list_share_metrics().map(|(cause, _)| cause).collect();
        assert_eq!(causes, LimitClass::ALL);
        for (metric, _) in EVIDENCE {
            assert!(
                GPU_FIELDS.iter().any(|field| field.id == metric),
                "{metric}"
            );
        }
    }

    #[test]
    fn shares_and_evidence_are_means_over_time() {
        let summary = summarize(&[
            ("limits.compute_percent", [80.0, 0.0]),
            ("limits.host_percent", [20.0, 100.0]),
            ("activity.fp32_percent", [80.0, 0.0]),
            ("activity.integer_percent", [10.0, 0.0]),
            ("activity.tensor_percent", [0.0, 0.0]),
        ]);
        let summary = summary.unwrap();
        assert_eq!(summary.shares_text(), "compute-bound 60 %, host-bound 40 %");
        assert_eq!(
            summary.text,
            "Arithmetic units are busy 60 % of the time, tensor cores 0 %."
        );
    }

    #[test]
    fn cause_without_stored_evidence_has_only_advice() {
        let summary = summarize(&[("limits.host_percent", [90.0, 90.0])]).unwrap();
        assert_eq!(summary.text, "");
        assert!(summary.advice.starts_with("Prepare data in"), "{summary:?}");
    }

    #[test]
    fn history_of_older_version_has_no_summary() {
        assert_eq!(
            summarize(&[("utilization.gpu_percent", [90.0, 90.0])]),
            None
        );
    }

    #[test]
    fn advice_about_reduced_clocks_depends_on_reason() {
        let device = make_device(&[("limits.power_percent", [60.0, 60.0])]);
        let mut meter = LimitMeter::default();
        meter.add(&device, 0, 10_000);
        let advise = |reason| {
            let kind = ConditionKind::Throttled {
                reasons: vec![reason],
                limit_watts: None,
                gpu_celsius: None,
            };
            let span = ConditionSpan {
                uuid: String::new(),
                from_ms: 0,
                to_ms: None,
                condition: Condition {
                    since_ms: 0,
                    severity: Severity::Notice,
                    text: String::new(),
                    kind,
                },
            };
            meter
                .summary(&[span], std::slice::from_ref(&(0..10_000)))
                .unwrap()
                .advice
        };
        assert_eq!(
            advise(ThrottleReason::HwThermalSlowdown),
            "Improve the cooling."
        );
        assert!(advise(ThrottleReason::SwPowerCap).contains("power limit"));
    }
}
