//! Counts of the driver's Xid errors.

use std::collections::BTreeMap;

use gpumon_probe::model::{Event, EventKind};

/// The maximum number of counts for all GPUs together. NVIDIA has fewer codes, so only a faulty
/// driver exceeds this number.
const MAX_COUNTS: usize = 4096;

/// The counts by the GPU's NVML index and the Xid code.
#[derive(Debug, Clone, Default)]
pub(crate) struct XidCounts(BTreeMap<(u32, u32), u64>);

impl XidCounts {
    pub(crate) fn count_event(&mut self, event: &Event) {
        let (Some(gpu), EventKind::Xid(report)) = (&event.gpu, &event.what) else {
            return;
        };
        let place = (gpu.index, report.code);
        if self.0.len() < MAX_COUNTS || self.0.contains_key(&place) {
            *self.0.entry(place).or_default() += 1;
        }
    }

    /// Returns a GPU's Xid codes and their counts.
    pub(crate) fn gpu_counts(&self, index: u32) -> impl Iterator<Item = (u32, u64)> {
        self.0
            .range((index, 0)..=(index, u32::MAX))
            .map(|((_, code), count)| (*code, *count))
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{GpuRef, XidReport};

    use super::*;

    #[test]
    fn each_error_of_each_gpu_is_counted() {
        let mut counts = XidCounts::default();
        let mut xid = |gpu: Option<u32>, code| {
            let gpu = gpu.map(|index| GpuRef { index, uuid: None });
            let report = XidReport {
                code,
                name: None,
                pid: None,
                meaning: String::new(),
                advice: String::new(),
                message: None,
            };
            counts.count_event(&Event {
                at_ms: 1,
                gpu,
                what: EventKind::Xid(report),
            });
        };
        for (gpu, code) in [(0, 79), (1, 13), (1, 79), (1, 13)] {
            xid(Some(gpu), code);
        }
        xid(None, 13);
        (0..10_000).for_each(|code| xid(Some(2), code));
        assert!(counts.gpu_counts(1).eq([(13, 2), (79, 1)]));
        assert_eq!(
            (counts.gpu_counts(0).count(), counts.gpu_counts(3).count()),
            (1, 0)
        );
        assert_eq!(counts.0.len(), MAX_COUNTS);
    }
}
