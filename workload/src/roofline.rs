//! The roofline: the rate of a workload compared with the theoretical peak.

use gpumon_probe::model::{Absence, Reading};

use crate::protocol::{LimitingResource, Roofline, Throughput};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RatedPeak {
    pub(crate) per_second: f64,
    pub(crate) at_mhz: Option<f64>,
}

impl RatedPeak {
    pub(crate) fn at_any_clock(per_second: f64) -> Self {
        Self {
            per_second,
            at_mhz: None,
        }
    }
}

/// Compares the achieved rate with the theoretical peak of the limiting resource.
pub(crate) fn compute_roofline(
    limit: LimitingResource,
    rate: &Throughput,
    rated: Reading<RatedPeak>,
) -> Roofline {
    let reached = match limit {
        LimitingResource::Compute => rate.operations_per_second,
        LimitingResource::Memory | LimitingResource::Link => rate.bytes_per_second,
        LimitingResource::Latency | LimitingResource::Driver => None,
    };
    let share = match (reached, rated.value()) {
        (Some(reached), Some(rated)) => Reading::Now(reached / rated.per_second),
        _ => Reading::Absent(Absence::Unknown),
    };
    let rated_mhz = rated.value().and_then(|rated| rated.at_mhz);
    Roofline {
        limit,
        rated_per_second: rated.map(|rated| rated.per_second),
        rated_mhz,
        share,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_clock_increases_share_of_peak() {
        let rate = Throughput {
            bytes_per_second: Some(1e12),
            operations_per_second: Some(500e12),
        };
        let rated = RatedPeak {
            per_second: 1000e12,
            at_mhz: Some(1830.0),
        };
        let roofline = compute_roofline(LimitingResource::Compute, &rate, Reading::Now(rated));
        assert_eq!(roofline.share, Reading::Now(0.5));
        assert_eq!(roofline.share_at_clock(1525.0), Some(0.6));
        assert_eq!(roofline.share_at_clock(0.0), None);
    }

    #[test]
    fn share_is_absent_if_peak_is_unknown() {
        let rate = Throughput {
            bytes_per_second: Some(2e12),
            operations_per_second: None,
        };
        let unknown = compute_roofline(
            LimitingResource::Memory,
            &rate,
            Reading::Absent(Absence::Unknown),
        );
        assert_eq!(unknown.share, Reading::Absent(Absence::Unknown));
        let memory = compute_roofline(
            LimitingResource::Memory,
            &rate,
            Reading::Now(RatedPeak::at_any_clock(4e12)),
        );
        assert_eq!(
            (memory.share.clone(), memory.share_at_clock(1000.0)),
            (Reading::Now(0.5), None)
        );
    }
}
