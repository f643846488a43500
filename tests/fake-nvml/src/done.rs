//! The activity of real processes on a simulated GPU, expressed as NVML does: shares of time, and
//! rates. The processes use the GPU through the fake CUDA driver.

use std::path::Path;

use fake_gpu_state::{Activity, DeviceActivity, now_ns, read_activity};
use gpumon_probe::vendor::sim::{Counters, GpuIdentity, Totals};

/// The number of bytes on the PCIe link for each copied byte. It is above 1, because the hardware
/// also counts packet headers. The next constant is the number for `NVLink`.
const PCIE_OVERHEAD: f64 = 1.09;
const NVLINK_OVERHEAD: f64 = 1.025;

/// The total activity on a GPU until a moment.
#[derive(Debug, Clone)]
pub(crate) struct TotalActivity {
    at_ns: u64,
    /// `None` before the first activity.
    uses: Option<DeviceActivity>,
}

pub(crate) struct ActivityRates {
    /// The share of time in which a kernel or a copy ran, in percent.
    pub(crate) busy_percent: f64,
    /// The share of time in which tensor cores worked on integers, in percent. The structure with
    /// the hardware's counters has no field for this.
    pub(crate) tensor_integer_percent: f64,
    /// The share of time in which tensor cores worked on double-precision numbers, in percent.
    pub(crate) tensor_double_percent: f64,
    /// The counters of the hardware.
    pub(crate) counters: Counters,
    /// The share of time in which a kernel or a copy of each process ran, in percent, by PID.
    pub(crate) by_pid: Vec<(u32, f64)>,
}

impl ActivityRates {
    /// Returns the activity of a GPU without real processes. It only consists of the scenario's
    /// counters.
    pub(crate) fn from_counters(counters: Counters) -> Self {
        Self {
            busy_percent: counters.sm_percent,
            tensor_integer_percent: 0.0,
            tensor_double_percent: 0.0,
            counters,
            by_pid: Vec::new(),
        }
    }
}

impl TotalActivity {
    pub(crate) fn read_now(folder: &Path, gpu: &GpuIdentity) -> Self {
        let mut uses = read_activity(folder, &gpu.uuid);
        if gpu.nvlinks.is_empty() {
            for did in uses.iter_mut().flat_map(|uses| uses.by_pid.values_mut()) {
                *did = count_nvlink_as_pcie(*did);
            }
        }
        Self {
            at_ns: now_ns(),
            uses,
        }
    }

    /// Returns the multiprocessors' peak clock in MHz; `None` before the first activity.
    pub(crate) fn sm_mhz(&self) -> Option<u32> {
        self.uses.as_ref().map(|uses| uses.peaks.sm_mhz as u32)
    }

    /// Returns the activity since an earlier moment; `None` for a GPU without any activity of real
    /// processes.
    pub(crate) fn activity_since(&self, earlier: &Self) -> Option<ActivityRates> {
        let uses = self.uses.as_ref()?;
        let before = |pid: Option<u32>| match (&earlier.uses, pid) {
            (None, _) => Activity::NONE,
            (Some(uses), None) => uses.total(),
            (Some(uses), Some(pid)) => uses.by_pid.get(&pid).copied().unwrap_or(Activity::NONE),
        };
        let window_ns = self.at_ns.saturating_sub(earlier.at_ns).max(1) as f64;
        let percent = |ns: u64| (ns as f64 / window_ns * 100.0).min(100.0);
        let per_second = |amount: u64| amount as f64 / window_ns * 1e9;
        let of_peak = |amount: u64, peak: f64| (per_second(amount) / peak * 100.0).min(100.0);
        let did = uses.total().subtract(before(None));
        let of_process = |(pid, own): (&u32, &Activity)| {
            (*pid, percent(own.subtract(before(Some(*pid))).busy_ns))
        };
        Some(ActivityRates {
            busy_percent: percent(did.busy_ns),
            tensor_integer_percent: of_peak(did.integer_clocks, uses.peaks.clocks_per_second()),
            tensor_double_percent: of_peak(did.double_clocks, uses.peaks.clocks_per_second()),
            counters: Counters {
                graphics_percent: percent(did.kernel_ns),
                sm_percent: percent(did.sm_ns),
                occupancy_percent: percent(did.warp_ns),
                tensor_percent: of_peak(did.half_clocks, uses.peaks.clocks_per_second()),
                fp32_percent: of_peak(did.single_clocks, uses.peaks.clocks_per_second()),
                // Integer operations outside of the tensor cores are not counted.
                integer_percent: 0.0,
                dram_bandwidth_percent: of_peak(did.dram_bytes, uses.peaks.dram_bytes),
                pcie_tx_bytes_per_second: per_second(did.pcie_tx_bytes) * PCIE_OVERHEAD,
                pcie_rx_bytes_per_second: per_second(did.pcie_rx_bytes) * PCIE_OVERHEAD,
                nvlink_tx_bytes_per_second: per_second(did.nvlink_tx_bytes) * NVLINK_OVERHEAD,
                nvlink_rx_bytes_per_second: per_second(did.nvlink_rx_bytes) * NVLINK_OVERHEAD,
            },
            by_pid: uses.by_pid.iter().map(of_process).collect(),
        })
    }

    /// Adds the activity to the scenario's counters.
    pub(crate) fn add_to_totals(&self, mut totals: Totals) -> Totals {
        let done = self
            .uses
            .as_ref()
            .map_or(Activity::NONE, DeviceActivity::total);
        totals.pcie_tx_bytes += done.pcie_tx_bytes as f64 * PCIE_OVERHEAD;
        totals.pcie_rx_bytes += done.pcie_rx_bytes as f64 * PCIE_OVERHEAD;
        // The `NVLink` counters only count data. Packet headers are counted separately, so there is
        // no factor for them here.
        totals.nvlink_tx_bytes += done.nvlink_tx_bytes as f64;
        totals.nvlink_rx_bytes += done.nvlink_rx_bytes as f64;
        totals
    }
}

/// Counts the traffic to other GPUs as PCIe traffic, for GPUs without `NVLinks`.
fn count_nvlink_as_pcie(did: Activity) -> Activity {
    Activity {
        pcie_tx_bytes: did.pcie_tx_bytes + did.nvlink_tx_bytes,
        pcie_rx_bytes: did.pcie_rx_bytes + did.nvlink_rx_bytes,
        nvlink_tx_bytes: 0,
        nvlink_rx_bytes: 0,
        ..did
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fake_gpu_state::Peaks;

    use super::*;

    const PEAKS: Peaks = Peaks {
        multiprocessors: 1.0,
        sm_mhz: 1.0,
        dram_bytes: 1e9,
    };

    fn make_total_activity(at_ns: u64, of_one: Activity, of_other: Activity) -> TotalActivity {
        let by_pid = BTreeMap::from([(1, of_one), (2, of_other)]);
        TotalActivity {
            at_ns,
            uses: Some(DeviceActivity {
                by_pid,
                peaks: PEAKS,
            }),
        }
    }

    #[test]
    fn activity_difference_yields_utilization_and_transfer_rates() {
        let before = make_total_activity(
            1_000,
            Activity {
                busy_ns: 5,
                ..Activity::NONE
            },
            Activity::NONE,
        );
        let one = Activity {
            busy_ns: 100_000_005,
            kernel_ns: 80_000_000,
            sm_ns: 50_000_000,
            half_clocks: 40_000,
            ..Activity::NONE
        };
        let other = Activity {
            busy_ns: 20_000_000,
            dram_bytes: 1 << 20,
            pcie_rx_bytes: 1000,
            ..Activity::NONE
        };
        let between = make_total_activity(200_001_000, one, other)
            .activity_since(&before)
            .unwrap();
        let near = |value: f64, expected: f64| {
            assert!(
                (value / expected - 1.0).abs() < 1e-6,
                "{value} for {expected}"
            );
        };
        near(between.busy_percent, 60.0);
        near(between.by_pid[0].1, 50.0);
        near(between.by_pid[1].1, 10.0);
        near(between.counters.graphics_percent, 40.0);
        near(between.counters.sm_percent, 25.0);
        near(between.counters.tensor_percent, 20.0);
        near(between.counters.dram_bandwidth_percent, 0.524_288);
        near(between.counters.pcie_rx_bytes_per_second, 5450.0);
        assert!(between.counters.nvlink_tx_bytes_per_second.abs() < 1e-9);
    }

    #[test]
    fn traffic_without_nvlinks_counts_as_pcie() {
        let did = Activity {
            pcie_tx_bytes: 1,
            nvlink_tx_bytes: 2,
            nvlink_rx_bytes: 4,
            ..Activity::NONE
        };
        assert_eq!(
            count_nvlink_as_pcie(did),
            Activity {
                pcie_tx_bytes: 3,
                pcie_rx_bytes: 4,
                ..Activity::NONE
            }
        );
    }

    #[test]
    fn scenario_activity_applies_until_work_is_recorded() {
        let nothing = TotalActivity {
            at_ns: 0,
            uses: None,
        };
        assert!(
            TotalActivity {
                at_ns: 100,
                uses: None
            }
            .activity_since(&nothing)
            .is_none()
        );
        let did = Activity {
            busy_ns: 30,
            ..Activity::NONE
        };
        let first = make_total_activity(100, did, Activity::NONE)
            .activity_since(&nothing)
            .unwrap();
        assert!((first.busy_percent - 30.0).abs() < 1e-9);
        // A negative difference counts as zero. It can occur, for example, because of the clock.
        let again = make_total_activity(100, Activity::NONE, Activity::NONE)
            .activity_since(&make_total_activity(100, did, did))
            .unwrap();
        assert!(again.busy_percent.abs() < 1e-9);
    }
}
