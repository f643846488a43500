//! What is done on a device.

use std::array;

/// What was done on a device: counters that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Time in which any kernel or copy ran.
    pub busy_ns: u64,
    /// The time of kernels, times the share of the multiprocessors that they were on.
    pub sm_ns: u64,
    /// The time of kernels, times the share of the warps that could have been resident and were.
    pub warp_ns: u64,
    /// Clocks in which tensor cores worked on half-precision and narrower floating-point numbers,
    /// of all multiprocessors together.
    pub half_clocks: u64,
    /// The same on integers.
    pub integer_clocks: u64,
    /// The same on double-precision numbers.
    pub double_clocks: u64,
    /// Clocks in which single-precision units worked.
    pub single_clocks: u64,
    /// Read and written by kernels.
    pub dram_bytes: u64,
    /// From the host to the device.
    pub pcie_rx_bytes: u64,
    /// From the device to the host.
    pub pcie_tx_bytes: u64,
    /// To other devices.
    pub nvlink_tx_bytes: u64,
    /// From other devices.
    pub nvlink_rx_bytes: u64,
}

/// How much of a device something takes while it runs, as shares.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Of the multiprocessors, those that have a warp; none for a copy.
    pub sms: f64,
    /// Of the warps that could be resident, those that are.
    pub warps: f64,
}

/// What a device does in a second at best.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Peaks {
    /// How many multiprocessors it has.
    pub multiprocessors: f64,
    /// Their clock.
    pub sm_mhz: f64,
    /// Bytes that its memory reads and writes.
    pub dram_bytes: f64,
}

impl Peaks {
    /// Clocks of all its multiprocessors together.
    pub fn clocks(self) -> f64 {
        self.multiprocessors * self.sm_mhz * 1e6
    }
}

/// How many counters there are.
pub(crate) const COUNTERS: usize = 12;

impl Activity {
    /// Nothing yet.
    pub const NONE: Self = Self::from_words([0; COUNTERS]);

    /// What was done since an earlier moment.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let (own, other) = (self.words(), other.words());
        Self::from_words(array::from_fn(|at| of(own[at], other[at])))
    }

    pub(crate) fn words(self) -> [u64; COUNTERS] {
        [
            self.busy_ns,
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

    pub(crate) const fn from_words(words: [u64; COUNTERS]) -> Self {
        Self {
            busy_ns: words[0],
            sm_ns: words[1],
            warp_ns: words[2],
            half_clocks: words[3],
            integer_clocks: words[4],
            double_clocks: words[5],
            single_clocks: words[6],
            dram_bytes: words[7],
            pcie_rx_bytes: words[8],
            pcie_tx_bytes: words[9],
            nvlink_tx_bytes: words[10],
            nvlink_rx_bytes: words[11],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_word() {
        let words = array::from_fn(|at| at as u64 + 1);
        let activity = Activity::from_words(words);
        assert_eq!(
            (activity.words(), activity.busy_ns, activity.nvlink_rx_bytes),
            (words, 1, 12)
        );
        assert_eq!(Activity::NONE.since(activity), Activity::NONE);
        assert_eq!(activity.and(activity).since(activity), activity);
    }
}
