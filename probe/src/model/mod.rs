//! The data model: the records of `gpumon collect`, the frames of the WebSocket and the entries of
//! the history.
//!
//! Names end with a unit: `_bytes`, `_percent` (0 to 100), `_watts`, `_celsius`, `_mhz`, `_ms`.
//! Every `at_ms` and `since_ms` is a wall-clock time in milliseconds since the Unix epoch. The
//! TypeScript types in `static/src/wire/` are generated from this module.

use std::time::{SystemTime, UNIX_EPOCH};

mod activity;
mod alert;
mod allocation;
mod board;
mod bus_id;
mod cell;
mod condition;
mod cost;
mod details;
mod energy_price;
mod event;
pub mod fields;
mod gpu_name;
mod inventory;
mod mig;
mod object;
mod owner;
mod playback;
mod process;
mod reading;
mod record;
mod sample;
mod severity;
mod topology;
mod trace;
mod vendor;
mod wording;

pub use activity::Activity;
pub use alert::{Alert, FiringAlert};
pub use allocation::Allocation;
pub use board::{Board, EnergySource, MaxClocks, PowerLimits, Thresholds};
pub use bus_id::normalize_bus_id;
pub(crate) use bus_id::sysfs_device_path;
pub use cell::Cell;
pub use condition::{Condition, ConditionKind, GpuProcess, MemoryGrowth};
pub use cost::{CellRun, Cost, CostCondition, CostMark, CostXid, GpuCost, StoredCost};
pub use details::{
    AccountedProcess, ApplicationClocks, Bar1, ComputeMode, ConfidentialCompute, Ecc, EccCounts,
    EccLocation, Fabric, FabricState, Fan, GpuDetails, Mode, Modes, NvLink, NvLinkRemote,
    RecoveryAction, RemappedRows, RetiredPages, SpareRows, ThrottledTimes,
};
pub use energy_price::EnergyPrice;
pub use event::{
    Event, EventKind, GpuRef, Mark, ProcessRef, Run, RunKind, RunStatus, XidReport, join_advice,
};
pub use gpu_name::{GpuName, GpuNameError};
pub use inventory::{Driver, Gpu, Inventory, KnownGpu, Platform, SourceKind};
pub use mig::{MigDevice, MigInstance, MigSample};
pub use object::Object;
pub use owner::{
    Ancestor, BatchJob, Container, ContainerRuntime, Job, JobKind, Notebook, Owner, Pod,
};
pub use playback::Playback;
pub use process::{Process, ProcessKind};
pub use reading::{Absence, Reading};
pub(crate) use reading::{Absent, absent};
pub use record::{Record, read_type};
pub use sample::{
    Clocks, CpuSample, DiskSample, GpuSample, Health, HostSample, MemoryKind, MemorySample,
    NetworkSample, NvLinks, PcieLink, Power, REASONS, RamSample, ReasonInfo, Sample, Temperature,
    ThrottleCause, ThrottleReason, Utilization,
};
pub use severity::Severity;
pub use topology::{GpuLink, PciPath};
pub use trace::{Trace, TraceMetric};
pub use vendor::Vendor;
pub use wording::{BROWSER_WORDINGS, GPU_PROCESS, SLOW_CLOCK_RATIO, WORDINGS, Wording};

/// Returns the current time in milliseconds since the Unix epoch, or 0 if the clock is set to a
/// time before 1970.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
