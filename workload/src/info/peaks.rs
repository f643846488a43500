//! The peak rates of chips according to their data sheets, and the comparison of a workload's rate
//! with the peak (the roofline). Chips that are not in the table have no peak rates.

use gpumon_probe::model::{Absence, Reading};
use serde::Serialize;

use crate::protocol::{Dtype, LimitingResource, Roofline, Throughput};

/// A compute capability, such as (9, 0).
type Capability = (u32, u32);

/// The number of operations that a multiprocessor executes per clock, without sparsity, for each
/// compute capability. A fused multiply-add counts as two operations.
const OPERATIONS_PER_CLOCK: [(Capability, &[(&str, f64)]); 6] = [
    ((7, 5), &[("fp32", 128.0), ("fp16", 1024.0)]),
    (
        (8, 0),
        &[
            ("fp64", 64.0),
            ("fp64_tensor", 128.0),
            ("fp32", 128.0),
            ("tf32", 1024.0),
            ("bf16", 2048.0),
            ("fp16", 2048.0),
            ("int8", 4096.0),
        ],
    ),
    (
        (8, 6),
        &[("fp32", 256.0), ("tf32", 512.0), ("bf16", 1024.0)],
    ),
    (
        (8, 9),
        &[
            ("fp32", 256.0),
            ("tf32", 512.0),
            ("bf16", 1024.0),
            ("fp8", 2048.0),
        ],
    ),
    (
        (9, 0),
        &[
            ("fp64", 128.0),
            ("fp64_tensor", 256.0),
            ("fp32", 256.0),
            ("tf32", 2048.0),
            ("bf16", 4096.0),
            ("fp16", 4096.0),
            ("fp8", 8192.0),
            ("int8", 8192.0),
        ],
    ),
    (
        (10, 0),
        &[("tf32", 4096.0), ("bf16", 8192.0), ("fp8", 16_384.0)],
    ),
];

/// The chips whose tensor cores have only half the rate on gaming boards, for products that are
/// summed in 32 bits.
const HALF_RATE_CHIPS: [Capability; 2] = [(8, 6), (8, 9)];

/// The clock that NVIDIA's data sheets use for Hopper's SXM boards, in MHz. The highest clock that
/// the driver reports is higher.
const HOPPER_SXM_MHZ: f64 = 1830.0;

/// The peak rates of a chip at a certain clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peaks {
    /// The clock of the multiprocessors that the rates are calculated for, in MHz.
    pub clock_mhz: f64,
    /// The source of the clock.
    pub clock_of: ClockSource,
    /// The peak rates of all types that the chip supports.
    pub by_type: Vec<Peak>,
}

/// The source of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The data sheet of the chip.
    DataSheet,
    /// The highest clock that the driver reports.
    Driver,
}

/// The peak rate for one type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peak {
    /// The type, such as `bf16`. The rate is that of tensor cores if they support the type, except
    /// for `fp32` and `fp64`.
    pub dtype: &'static str,
    /// The number of operations per second. A fused multiply-add counts as two operations.
    pub operations_per_second: f64,
}

impl Peaks {
    /// Returns the peak rates of a chip, or `None` if the chip is not in the table.
    pub(super) fn new(
        name: &str,
        capability: Capability,
        multiprocessors: u32,
        max_clock_mhz: f64,
    ) -> Option<Self> {
        let (_, per_clock) = OPERATIONS_PER_CLOCK
            .iter()
            .find(|(known, _)| *known == capability)?;
        let (clock_mhz, clock_of) = if is_hopper_sxm(name, multiprocessors) {
            (HOPPER_SXM_MHZ, ClockSource::DataSheet)
        } else {
            (max_clock_mhz, ClockSource::Driver)
        };
        let is_halved = HALF_RATE_CHIPS.contains(&capability) && name.contains("GeForce");
        let by_type = per_clock.iter().map(|(dtype, operations)| {
            let share = if is_halved && *dtype != "fp32" {
                0.5
            } else {
                1.0
            };
            let each = operations * share * f64::from(multiprocessors);
            Peak {
                dtype,
                operations_per_second: each * clock_mhz * 1e6,
            }
        });
        Some(Self {
            clock_mhz,
            clock_of,
            by_type: by_type.collect(),
        })
    }

    /// Returns the peak rate for a type. If both tensor cores and other units support the type, the
    /// rate is that of the tensor cores.
    pub(super) fn find_rate(&self, dtype: Dtype) -> Option<f64> {
        let name = dtype.to_string();
        let of = |name: &str| self.by_type.iter().find(|peak| peak.dtype == name);
        of(&format!("{name}_tensor"))
            .or_else(|| of(&name))
            .map(|peak| peak.operations_per_second)
    }
}

/// Returns `true` for Hopper's SXM boards. PCIe boards have fewer multiprocessors or, like the NVL
/// board, a lower clock.
fn is_hopper_sxm(name: &str, multiprocessors: u32) -> bool {
    let is_hopper = ["H200", "H100 80GB HBM3"]
        .iter()
        .any(|board| name.contains(board));
    is_hopper && !name.contains("GH200") && !name.contains("NVL") && multiprocessors == 132
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RatedPeak {
    pub(crate) per_second: f64,
    pub(crate) at_mhz: Option<f64>,
}

impl RatedPeak {
    pub(crate) fn new_independent_of_clock(per_second: f64) -> Self {
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

    #[track_caller]
    fn assert_peak(
        name: &str,
        capability: Capability,
        count: u32,
        mhz: f64,
        dtype: &str,
        teraflops: f64,
    ) {
        let peaks = Peaks::new(name, capability, count, mhz).unwrap();
        let peak = peaks
            .by_type
            .iter()
            .find(|peak| peak.dtype == dtype)
            .unwrap();
        let computed = peak.operations_per_second / 1e12;
        assert!(
            (computed - teraflops).abs() < 0.06,
            "{name} {dtype}: {computed}"
        );
    }

    #[test]
    fn peaks_match_data_sheets() {
        assert_peak("NVIDIA H200", (9, 0), 132, 1980.0, "bf16", 989.4);
        assert_peak("NVIDIA H200", (9, 0), 132, 1980.0, "fp64_tensor", 61.8);
        assert_peak("NVIDIA A100-SXM4-80GB", (8, 0), 108, 1410.0, "bf16", 311.9);
        assert_peak("NVIDIA A100-SXM4-80GB", (8, 0), 108, 1410.0, "fp64", 9.7);
        assert_peak("NVIDIA GeForce RTX 3090", (8, 6), 82, 1695.0, "fp32", 35.6);
        assert_peak("NVIDIA GeForce RTX 3090", (8, 6), 82, 1695.0, "tf32", 35.6);
        assert_peak("NVIDIA RTX A6000", (8, 6), 84, 1800.0, "bf16", 154.8);
    }

    #[test]
    fn peak_clock_source_is_reported_for_known_chips() {
        let clock = |name| Peaks::new(name, (9, 0), 132, 1785.0).unwrap().clock_of;
        assert_eq!(
            (clock("NVIDIA H200"), clock("NVIDIA H200 NVL")),
            (ClockSource::DataSheet, ClockSource::Driver)
        );
        assert_eq!(Peaks::new("NVIDIA Next", (11, 7), 200, 2000.0), None);
    }

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
        assert_eq!(roofline.peak_share_at_clock(1525.0), Some(0.6));
        assert_eq!(roofline.peak_share_at_clock(0.0), None);
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
            Reading::Now(RatedPeak::new_independent_of_clock(4e12)),
        );
        assert_eq!(
            (memory.share.clone(), memory.peak_share_at_clock(1000.0)),
            (Reading::Now(0.5), None)
        );
    }
}
