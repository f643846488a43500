//! The causes that limited a GPU while a job used it, from the history.

use std::{collections::BTreeMap, ops::Range};

use gpumon_history::span::{ConditionSpan, DeviceSpan};
use gpumon_probe::{
    derive::are_copies_small,
    model::{
        ArithmeticUnit, ConditionKind, LimitClass, LimitEvidence, LimitSummary, ThrottleCause,
        fields::GPU_FIELDS,
    },
    stat::Window,
    units::round_to_three_digits,
};

use crate::commands::figures::{calculate_throttled_percent, find_series};

type EvidenceField = fn(&mut LimitEvidence) -> &mut Option<f64>;

/// The metrics whose means are evidence. If a field has several metrics, the largest mean counts.
const EVIDENCE: [(&str, EvidenceField); 9] = [
    ("clocks.sm_mhz", |it| &mut it.sm_mhz),
    ("utilization.gpu_percent", |it| &mut it.gpu_percent),
    ("activity.sm_percent", |it| &mut it.sm_percent),
    ("activity.tensor_percent", |it| &mut it.tensor_percent),
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

/// The metrics of the arithmetic units.
const UNITS: [(&str, ArithmeticUnit); 4] = [
    ("activity.fp64_percent", ArithmeticUnit::Fp64),
    ("activity.fp32_percent", ArithmeticUnit::Fp32),
    ("activity.fp16_percent", ArithmeticUnit::Fp16),
    ("activity.integer_percent", ArithmeticUnit::Integer),
];

/// The share of time in which the tensor cores work on double-precision numbers.
const TENSOR_DOUBLE: &str = "activity.tensor_double_percent";

/// The share of time in which kernels run.
const KERNELS: &str = "activity.graphics_percent";

/// The accumulated values of each metric.
type MetricWindows = BTreeMap<&'static str, Window>;

/// Sums up the shares of the causes and the evidence.
#[derive(Debug, Default)]
pub(super) struct LimitMeter {
    /// The time with limits.
    ms: u64,
    shares: MetricWindows,
    /// The evidence from the points in which each cause has the largest share.
    evidence: [MetricWindows; LimitClass::ALL.len()],
}

impl LimitMeter {
    /// Returns the metrics that are needed.
    pub(super) fn list_metrics() -> impl Iterator<Item = &'static str> {
        list_share_metrics()
            .map(|(_, metric)| metric)
            .chain(list_evidence_metrics())
    }

    /// Adds the point at the index `place` of the device's series.
    pub(super) fn add(&mut self, device: &DeviceSpan, place: usize, time_ms: u64) {
        let find = |metric| find_series(device, metric)?.stat_at(place);
        let add = |windows: &mut MetricWindows, metric| {
            if let Some(stat) = find(metric) {
                let window = windows.entry(metric).or_default();
                window.merge(stat, time_ms as f64);
            }
        };
        let shares =
            list_share_metrics().filter_map(|(cause, metric)| Some((cause, find(metric)?.mean)));
        let Some((main, _)) = shares.max_by(|one, other| one.1.total_cmp(&other.1)) else {
            return;
        };
        self.ms += time_ms;
        for (_, metric) in list_share_metrics() {
            add(&mut self.shares, metric);
        }
        for metric in list_evidence_metrics() {
            add(&mut self.evidence[main as usize], metric);
        }
    }

    /// Returns the summary, or `None` if the history contains no limits. `held` contains the times
    /// in which the job used the device.
    pub(super) fn summary(
        &self,
        conditions: &[ConditionSpan],
        held: &[Range<u64>],
    ) -> Option<LimitSummary> {
        let shares = list_share_metrics()
            .map(|(cause, metric)| (cause, find_mean(&self.shares, metric).unwrap_or_default()));
        LimitSummary::new(self.ms, shares, |main| {
            let mut evidence = make_evidence(&self.evidence[main as usize]);
            let reduced = |cause| {
                let with_cause = conditions.iter().filter(|span| has_cause(span, cause));
                calculate_throttled_percent(with_cause, held)
            };
            evidence.too_hot = reduced(ThrottleCause::Thermal) > reduced(ThrottleCause::Power);
            evidence
        })
    }
}

/// Returns the mean of a metric, or `None` if the history contains no value of the metric.
fn find_mean(windows: &MetricWindows, metric: &str) -> Option<f64> {
    windows.get(metric)?.mean()
}

/// Returns the evidence for a cause. `windows` contains the points in which the cause has the
/// largest share.
fn make_evidence(windows: &MetricWindows) -> LimitEvidence {
    let mut evidence = LimitEvidence::default();
    for (metric, field) in EVIDENCE {
        if let Some(mean) = find_mean(windows, metric).map(round_to_three_digits) {
            let value = field(&mut evidence);
            *value = Some(value.map_or(mean, |known| known.max(mean)));
        }
    }
    let means = UNITS.into_iter().filter_map(|(metric, unit)| {
        let mean = find_mean(windows, metric)?;
        Some((round_to_three_digits(mean), unit))
    });
    let busiest = means.max_by(|one, other| one.0.total_cmp(&other.0));
    (evidence.arithmetic_percent, evidence.arithmetic_unit) = busiest.unzip();
    let tensor = evidence.tensor_percent.unwrap_or_default();
    let double = find_mean(windows, TENSOR_DOUBLE).unwrap_or_default();
    evidence.is_tensor_double = double > tensor / 2.0;
    let counters = [
        find_mean(windows, KERNELS),
        evidence.sm_percent,
        evidence.pcie_bytes_per_second,
    ];
    if let [Some(kernels), Some(sm), Some(pcie)] = counters {
        evidence.small_copies = are_copies_small(kernels / 100.0, sm / 100.0, pcie);
    }
    evidence
}

/// Returns the metrics whose means are evidence.
fn list_evidence_metrics() -> impl Iterator<Item = &'static str> {
    let evidence = EVIDENCE.into_iter().map(|(metric, _)| metric);
    let units = UNITS.into_iter().map(|(metric, _)| metric);
    evidence.chain(units).chain([TENSOR_DOUBLE, KERNELS])
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
        for metric in LimitMeter::list_metrics() {
            assert!(
                GPU_FIELDS.iter().any(|field| field.id == metric),
                "{metric}"
            );
        }
    }

    #[test]
    fn evidence_is_from_times_with_the_main_cause() {
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
            "FP32 units are busy 80 % of the time, tensor cores 0 %."
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
