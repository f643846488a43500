//! Simulated GPUs, for tests and for demonstrations without hardware.
//!
//! - [`Scenario`] describes the GPUs and the events, either from a file or with default values.
//! - [`World`] calculates the state of a GPU at a certain time. The state is a pure function of the
//!   scenario, including its seed, and the time.
//! - [`Timeline`] is the clock, and [`Machine`] adds counters that grow over time.
//! - [`start`] creates the source for `--source sim`, in which [`answer_query`] replaces NVML.
//!   gpumon's fake NVML library uses the same machine.

mod accounting;
mod answers;
mod architecture;
mod backend;
mod board;
mod buffers;
mod clocks;
mod encoder;
mod garbage;
mod identity;
mod machine;
mod meters;
mod mig;
mod noise;
mod nvlink;
mod presence;
mod profile;
mod program_names;
mod reporter;
mod scenario;
mod state;
mod tenancy;
mod thermal;
mod timeline;
mod wear;
mod world;

pub use super::nvml::FUNCTIONS;
pub use answers::{SimulatedGpu, answer_query};
pub use architecture::Architecture;
pub use backend::start;
pub use buffers::RecordedValue;
pub use clocks::{MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ};
pub use encoder::EncoderSession;
pub use identity::GpuIdentity;
pub use machine::Machine;
pub use meters::Totals;
pub use mig::MigState;
pub use nvlink::{LinkState, NVLINK_MB_PER_SECOND};
pub use scenario::{GivenAnswer, Profile, Scenario, ScheduledEvent};
pub use state::{Counters, GpuState, ProcessState};
pub use timeline::Timeline;
pub use wear::{EccErrors, Wear};
pub use world::World;
