//! The vocabulary: what `gpumon collect` prints, what the WebSocket carries, what history keeps.
//!
//! Names carry their unit: `_bytes`, `_percent` (0 to 100), `_watts`, `_celsius`, `_mhz`, `_ms`.
//! Every `at_ms` and `since_ms` is a wall-clock time in milliseconds since the Unix epoch.
//! TypeScript's types of all this are generated from here into `static/src/wire/`.

mod activity;
mod event;
mod inventory;
mod metric;
mod owner;
mod process;
mod reading;
mod record;
mod sample;
mod time;

pub use activity::Activity;
pub use event::{Event, EventKind, GpuRef};
pub use inventory::{Gpu, Inventory, Platform, SourceKind};
pub use metric::{METRICS, Metric};
pub use owner::{Ancestor, Container, ContainerRuntime, Notebook, Owner, Pod, SlurmJob};
pub use process::{Process, ProcessKind};
pub use reading::{Absence, Reading};
pub use record::Record;
pub use sample::{
    Clocks, CpuSample, DiskSample, GpuSample, Health, HostSample, MemorySample, NetworkSample, NvLinks, PcieLink,
    Power, RamSample, Sample, Temperature, ThrottleReason, Utilization,
};
pub use time::now_ms;
