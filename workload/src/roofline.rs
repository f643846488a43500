//! The roofline: the rate of a workload compared with the theoretical peak.

use gpumon_probe::model::{Absence, Reading};

use crate::protocol::{Bound, Rate, Roofline};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rated {
    pub(crate) per_second: f64,
    pub(crate) at_mhz: Option<f64>,
}

impl Rated {
    pub(crate) fn at_any_clock(per_second: f64) -> Self {
        Self {
            per_second,
            at_mhz: None,
        }
    }
}

/// Compares a rate with the theoretical peak.
pub(crate) fn roofline(limit: Bound, rate: &Rate, rated: Reading<Rated>) -> Roofline {
    let reached = match limit {
        Bound::Compute => rate.operations_per_second,
        Bound::Memory | Bound::Link => rate.bytes_per_second,
        Bound::Latency | Bound::Driver => None,
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
    fn a_slower_clock_makes_the_same_rate_a_larger_share() {
        let rate = Rate {
            bytes_per_second: Some(1e12),
            operations_per_second: Some(500e12),
        };
        let rated = Rated {
            per_second: 1000e12,
            at_mhz: Some(1830.0),
        };
        let roofline = roofline(Bound::Compute, &rate, Reading::Now(rated));
        assert_eq!(roofline.share, Reading::Now(0.5));
        assert_eq!(roofline.share_at(1525.0), Some(0.6));
        assert_eq!(roofline.share_at(0.0), None);
    }

    #[test]
    fn where_nothing_is_known_there_is_no_share() {
        let rate = Rate {
            bytes_per_second: Some(2e12),
            operations_per_second: None,
        };
        let unknown = roofline(Bound::Memory, &rate, Reading::Absent(Absence::Unknown));
        assert_eq!(unknown.share, Reading::Absent(Absence::Unknown));
        let memory = roofline(
            Bound::Memory,
            &rate,
            Reading::Now(Rated::at_any_clock(4e12)),
        );
        assert_eq!(
            (memory.share.clone(), memory.share_at(1000.0)),
            (Reading::Now(0.5), None)
        );
    }
}
