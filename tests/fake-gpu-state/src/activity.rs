//! The activity on a simulated device.

use std::array;

/// The activity on a device, as counters that never decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// The time during which a kernel or a copy ran.
    pub busy_ns: u64,
    /// The time during which a kernel ran.
    pub kernel_ns: u64,
    /// The time of kernels, multiplied by the share of multiprocessors that they used.
    pub sm_ns: u64,
    /// The time of kernels, multiplied by their occupancy (resident warps by possible warps).
    pub warp_ns: u64,
    /// The clock cycles in which tensor cores worked on floating-point numbers of half precision or
    /// less, summed over all multiprocessors.
    pub half_clocks: u64,
    /// The clocks in which tensor cores worked on integers, summed over all multiprocessors.
    pub integer_clocks: u64,
    /// The clocks in which tensor cores worked on double-precision numbers, summed over all
    /// multiprocessors.
    pub double_clocks: u64,
    /// The clocks in which single-precision units worked, summed over all multiprocessors.
    pub single_clocks: u64,
    /// The bytes that kernels read from and wrote to memory.
    pub dram_bytes: u64,
    /// The bytes copied from the host to the device.
    pub pcie_rx_bytes: u64,
    /// The bytes copied from the device to the host.
    pub pcie_tx_bytes: u64,
    /// The bytes sent to other devices.
    pub nvlink_tx_bytes: u64,
    /// The bytes received from other devices.
    pub nvlink_rx_bytes: u64,
}

/// The shares of a device that a kernel or copy uses while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// The share of multiprocessors that have a warp. 0 for a copy.
    pub sms: f64,
    /// The share of possible warps that are resident.
    pub warps: f64,
    /// The share of time in which tensor cores work on half-precision numbers, in addition to the
    /// operations that are recorded at the end.
    pub tensor: f64,
    /// The same share for the single-precision units.
    pub single: f64,
    /// The used share of the memory bandwidth, in addition to the recorded bytes.
    pub dram: f64,
}

/// The peak performance of a device.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Peaks {
    pub multiprocessors: f64,
    /// The clock of the multiprocessors in MHz.
    pub sm_mhz: f64,
    /// The memory bandwidth in bytes per second.
    pub dram_bytes: f64,
}

impl Peaks {
    /// Returns the clocks per second of all multiprocessors together.
    pub fn clocks_per_second(self) -> f64 {
        self.multiprocessors * self.sm_mhz * 1e6
    }
}

/// The number of counters in [`Activity`].
pub(crate) const COUNTER_COUNT: usize = 13;

impl Activity {
    /// An activity with all counters at 0.
    pub const NONE: Self = Self::from_words([0; COUNTER_COUNT]);

    /// Returns the activity between an earlier moment and this one.
    #[must_use]
    pub fn subtract(self, earlier: Self) -> Self {
        self.combine(earlier, u64::saturating_sub)
    }

    /// Returns the sum of both activities.
    #[must_use]
    pub fn sum_with(self, other: Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    fn combine(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let (own, other) = (self.to_words(), other.to_words());
        Self::from_words(array::from_fn(|at| of(own[at], other[at])))
    }

    pub(crate) fn to_words(self) -> [u64; COUNTER_COUNT] {
        [
            self.busy_ns,
            self.kernel_ns,
            self.sm_ns,
            self.warp_ns,
            self.half_clocks,
            self.integer_clocks,
            self.double_clocks,
            self.single_clocks,
            self.dram_bytes,
            self.pcie_rx_bytes,
            self.pcie_tx_bytes,
            self.nvlink_tx_bytes,
            self.nvlink_rx_bytes,
        ]
    }

    pub(crate) const fn from_words(words: [u64; COUNTER_COUNT]) -> Self {
        Self {
            busy_ns: words[0],
            kernel_ns: words[1],
            sm_ns: words[2],
            warp_ns: words[3],
            half_clocks: words[4],
            integer_clocks: words[5],
            double_clocks: words[6],
            single_clocks: words[7],
            dram_bytes: words[8],
            pcie_rx_bytes: words[9],
            pcie_tx_bytes: words[10],
            nvlink_tx_bytes: words[11],
            nvlink_rx_bytes: words[12],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activity_counters_survive_conversion_to_words() {
        let words = array::from_fn(|at| at as u64 + 1);
        let activity = Activity::from_words(words);
        assert_eq!(
            (
                activity.to_words(),
                activity.busy_ns,
                activity.nvlink_rx_bytes
            ),
            (words, 1, 13)
        );
        assert_eq!(Activity::NONE.subtract(activity), Activity::NONE);
        assert_eq!(activity.sum_with(activity).subtract(activity), activity);
    }
}
