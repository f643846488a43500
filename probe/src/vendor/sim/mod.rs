//! Simulated GPUs, for demonstrations without hardware and for tests.
//!
//! - [`Scenario`] describes the GPUs and the events, in a file or with default values.
//! - [`World`] computes the state of a GPU at a moment. It is a pure function of the scenario, with
//!   its seed, and the time.
//! - [`Timeline`] is the clock, and [`Machine`] adds counters that grow with the time.
//! - [`start`] creates the source of `--source sim`, in which [`answer_query`] replaces NVML.
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
pub use buffers::Recorded;
pub use clocks::{MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ};
pub use encoder::EncoderSession;
pub use identity::GpuIdentity;
pub use machine::Machine;
pub use meters::Totals;
pub use mig::MigState;
pub use nvlink::{LinkState, NVLINK_MB_PER_SECOND};
pub use scenario::{Given, Profile, Report, Scenario};
pub use state::{Counters, GpuState, ProcessState};
pub use timeline::Timeline;
pub use wear::{EccErrors, Wear};
pub use world::World;
