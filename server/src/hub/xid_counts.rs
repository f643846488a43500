//! Counts of the driver's errors (Xids).

use std::collections::BTreeMap;

use gpumon_probe::model::{Event, EventKind};

/// The maximum number of counted codes of all GPUs. NVIDIA has fewer codes, so only a faulty driver
/// exceeds this.
const MOST: usize = 4096;

/// The counts by NVML index and Xid.
#[derive(Debug, Clone, Default)]
pub(crate) struct XidCounts(BTreeMap<(u32, u32), u64>);

impl XidCounts {
    pub(crate) fn count(&mut self, event: &Event) {
        let (Some(gpu), EventKind::Xid(report)) = (&event.gpu, &event.what) else {
            return;
        };
        let place = (gpu.index, report.code);
        if self.0.len() < MOST || self.0.contains_key(&place) {
            *self.0.entry(place).or_default() += 1;
        }
    }

    /// Returns the codes of a GPU with their counts.
    pub(crate) fn of_gpu(&self, index: u32) -> impl Iterator<Item = (u32, u64)> {
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
            counts.count(&Event {
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
        assert!(counts.of_gpu(1).eq([(13, 2), (79, 1)]));
        assert_eq!((counts.of_gpu(0).count(), counts.of_gpu(3).count()), (1, 0));
        assert_eq!(counts.0.len(), MOST);
    }
}
