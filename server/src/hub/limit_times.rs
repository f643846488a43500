//! The time in which each cause limited each GPU since the server's start.

use std::collections::BTreeMap;

use gpumon_probe::model::{GpuSample, LimitClass, LimitSums, Reading, Sample};

/// The time in which each cause limited each GPU, by the GPU's NVML index.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimitTimes(BTreeMap<u32, GpuTimes>);

#[derive(Debug, Clone, Default)]
struct GpuTimes {
    uuid: Option<String>,
    /// The end of the latest counted window.
    counted_ms: u64,
    sums: LimitSums,
}

impl LimitTimes {
    /// Adds the windows that end with a sample.
    pub(crate) fn count_sample(&mut self, sample: &Sample) {
        for gpu in &sample.gpus {
            self.count_gpu(gpu);
        }
    }

    fn count_gpu(&mut self, gpu: &GpuSample) {
        // The samples until the next window ends repeat the limits as an earlier reading.
        let Reading::Now(limits) = &gpu.limits else {
            return;
        };
        let times = self.0.entry(gpu.index).or_default();
        if times.uuid != gpu.uuid {
            *times = GpuTimes {
                uuid: gpu.uuid.clone(),
                ..GpuTimes::default()
            };
        }
        // The newest sample of a joined server arrives twice, and its first window may begin before
        // the last window of this server's own collector ended. After the clock was set back, the
        // whole window is added.
        let uncounted_ms = gpu.at_ms.checked_sub(times.counted_ms);
        let ms = uncounted_ms.map_or(limits.window_ms, |ms| ms.min(limits.window_ms));
        times.counted_ms = gpu.at_ms;
        times.sums.add(limits, ms as f64);
    }

    /// Returns the time in which each cause limited a GPU, in seconds. There is none before the
    /// GPU's first window ends.
    pub(crate) fn gpu_seconds(&self, index: u32) -> impl Iterator<Item = (LimitClass, f64)> {
        let times = self.0.get(&index).into_iter();
        times.flat_map(|times| times.sums.seconds())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use gpumon_probe::model::{Absence, Confidence, Health, LimitEvidence, Limits};

    use super::*;

    /// Returns a sample of GPU 0 at the end of a window in which the CPU limited the GPU for 75 %
    /// of the time. The GPU has no counter of its tensor cores.
    pub(crate) fn make_limited_gpu(at_ms: u64, window_ms: u64) -> GpuSample {
        let shares = LimitClass::ALL.map(|class| match class {
            LimitClass::Tensor => Reading::NOT_SUPPORTED,
            LimitClass::Host => Reading::Now(75.0),
            LimitClass::Unknown => Reading::Now(25.0),
            _ => Reading::Now(0.0),
        });
        let (main, evidence) = (LimitClass::Host, LimitEvidence::default());
        let limits = Limits::new(window_ms, shares, main, Confidence::High, evidence);
        let uuid = Some("GPU-0".to_owned());
        let mut gpu = GpuSample::new_absent(0, uuid, at_ms, Health::Ok, &Absence::NotSupported);
        gpu.limits = Reading::Now(limits);
        gpu
    }

    fn host_seconds(times: &LimitTimes) -> Option<f64> {
        let mut seconds = times.gpu_seconds(0);
        seconds.find_map(|(class, seconds)| (class == LimitClass::Host).then_some(seconds))
    }

    #[test]
    fn each_window_is_counted_once() {
        let mut times = LimitTimes::default();
        assert_eq!(host_seconds(&times), None);
        let mut gpu = make_limited_gpu(20_000, 10_000);
        times.count_gpu(&gpu);
        times.count_gpu(&gpu);
        let value = gpu.limits.value().unwrap().clone();
        (gpu.at_ms, gpu.limits) = (
            21_000,
            Reading::Earlier {
                value,
                at_ms: 20_000,
            },
        );
        times.count_gpu(&gpu);
        assert_eq!(host_seconds(&times), Some(7.5));
        // This window of another collector begins before the first window ends.
        times.count_gpu(&make_limited_gpu(24_000, 10_000));
        assert_eq!(host_seconds(&times), Some(10.5));
        // The clock was set back.
        times.count_gpu(&make_limited_gpu(5_000, 2_000));
        assert_eq!(host_seconds(&times), Some(12.0));
        let causes: Vec<_> = times.gpu_seconds(0).map(|(class, _)| class).collect();
        assert_eq!(causes.len(), LimitClass::ALL.len() - 1);
        assert!(!causes.contains(&LimitClass::Tensor), "{causes:?}");
    }

    #[test]
    fn replaced_gpu_starts_at_zero() {
        let mut times = LimitTimes::default();
        times.count_gpu(&make_limited_gpu(20_000, 10_000));
        let mut other = make_limited_gpu(30_000, 2_000);
        other.uuid = Some("GPU-9".to_owned());
        times.count_gpu(&other);
        assert_eq!(host_seconds(&times), Some(1.5));
    }
}
