//! Values derived from readings: rates, events and conditions.
//!
//! - [`HostRates`] derives rates from two consecutive samples.
//! - [`sanity_check`] removes impossible readings before they are used.
//! - [`ConditionTracker`] derives the conditions of a GPU; [`is_memory_nearly_full`] and
//!   [`unlisted_bytes`] apply two of its rules to a single sample.
//! - [`detection_time_ms`] returns the time that a newly started collector needs to detect a
//!   condition that was already present.
//! - [`Baseline`] contains the learned usual clock and power of a GPU.
//! - [`LimitTracker`] and [`name_slow_gpus`] derive what limits the work of a GPU. After
//!   [`MAX_LIMITS_AGE_MS`], the limits are outdated. [`are_copies_small`] distinguishes small
//!   copies from kernels.
//! - [`Clock`] and [`Hysteresis`] delay the start and end of conditions and alerts.
//! - [`ProcessTracker`] and [`EccTracker`] derive events from changes.
//! - [`ErrorFilter`] removes duplicates of driver errors that are reported twice.

// Readings can have any value, so arithmetic must not overflow.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod conditions;
mod events;
mod limits;
mod rates;
pub mod sanity_check;

#[cfg(test)]
pub(crate) use conditions::make_learned_baseline;
pub use conditions::{
    Baseline, Clock, ConditionSettings, ConditionTracker, Hysteresis, Moment, Observation,
    detection_time_ms, is_memory_nearly_full, may_be_hung, unlisted_bytes,
};
pub use events::{EccTracker, ErrorFilter, ProcessTracker};
pub use limits::{LimitTracker, MAX_LIMITS_AGE_MS, are_copies_small, name_slow_gpus};
pub use rates::HostRates;

/// Example GPUs for tests.
#[cfg(test)]
pub(crate) mod examples {
    use std::sync::LazyLock;

    use crate::host::HostReader;
    use crate::model::{
        Absence, Absent, Activity, Board, Confidence, GpuDetails, GpuSample, Health, HostSample,
        LimitClass, LimitEvidence, Limits, Owner, Process, ProcessKind, Reading,
    };

    pub(super) const GIB: u64 = 1 << 30;

    /// Returns a sample of a busy, healthy GPU with 80 GiB and no processes.
    pub(crate) fn make_sample(at_ms: u64) -> GpuSample {
        let mut sample = GpuSample::new_absent(
            0,
            Some("GPU-0".into()),
            at_ms,
            Health::Ok,
            &Absence::NotSupported,
        );
        set_gpu_use(&mut sample, 90.0, 60.0);
        sample.memory.total_bytes = Reading::Now(80 * GIB);
        sample.memory.used_bytes = Reading::Now(0);
        sample.memory.free_bytes = Reading::Now(80 * GIB);
        sample.throttle_reasons = Reading::Now(Vec::new());
        sample.pcie.generation = Reading::Now(1);
        sample.pcie.width = Reading::Now(16);
        sample.processes = Reading::Now(Vec::new());
        sample
    }

    /// Sets NVML's GPU utilization and GPM's SM activity.
    pub(crate) fn set_gpu_use(sample: &mut GpuSample, gpu_percent: f64, sm_percent: f64) {
        sample.utilization.gpu_percent = Reading::Now(gpu_percent);
        sample.activity = Reading::Now(make_activity(sm_percent, 0.0));
    }

    pub(crate) fn make_activity(sm_percent: f64, tensor_percent: f64) -> Activity {
        Activity {
            graphics_percent: Reading::Now(sm_percent),
            sm_percent: Reading::Now(sm_percent),
            tensor_percent: Reading::Now(tensor_percent),
            ..Activity::new_absent(&Absence::NotSupported)
        }
    }

    /// Returns the readings of a host.
    pub(super) fn make_host() -> HostSample {
        static HOST: LazyLock<HostSample> = LazyLock::new(|| HostReader::new().read());
        HOST.clone()
    }

    /// Returns limits of a GPU that is idle.
    pub(crate) fn make_limits() -> Limits {
        let shares = LimitClass::ALL
            .map(|class| Reading::Now(f64::from(u8::from(class == LimitClass::Idle)) * 100.0));
        let evidence = LimitEvidence::default();
        Limits::new(1000, shares, LimitClass::Idle, Confidence::High, evidence)
    }

    /// Returns details that cause no condition.
    pub(super) fn make_details(at_ms: u64) -> GpuDetails {
        GpuDetails::new_absent(0, Some("GPU-0".into()), at_ms, &Absence::NotSupported)
    }

    /// Returns a board with 16 PCIe lanes.
    pub(super) fn make_board() -> Board {
        let mut board = Board::new_absent(&Absence::Unknown);
        board.pcie_max_width = Reading::Now(16);
        board
    }

    /// Returns a compute process of the user `ana`.
    pub(crate) fn make_process(pid: u32, memory_bytes: u64) -> Process {
        let absent = || Reading::Absent(Absence::NotSupported);
        Process {
            pid,
            kind: ProcessKind::Compute,
            memory_bytes: Reading::Now(memory_bytes),
            sm_percent: Reading::Now(0.0),
            memory_percent: absent(),
            encoder_percent: absent(),
            decoder_percent: absent(),
            name: Reading::Now("train.py".into()),
            program: None,
            command: Reading::Absent(Absence::Hidden),
            user: Reading::Now("ana".into()),
            host_memory_bytes: Reading::Absent(Absence::NotSupported),
            traced: Reading::Now(false),
            started_ms: Reading::Now(1),
            mig: None,
            mps: false,
            owner: Reading::Now(Owner::default()),
        }
    }
}
