//! Simulated GPUs: a believable machine that needs no hardware, and a stage for tests.
//!
//! - [`Scenario`] says what there is and what happens; [`Scenario::simple`] needs no file.
//! - [`World`] answers what a GPU does at a moment: a pure function, the same for the same seed.
//! - [`Timeline`] says which moment it is, and [`Machine`] has the counters that go on with it.
//! - [`start`] makes the source behind `--source sim`, in which [`answer_query`] takes the place of
//!   NVML. gpumon's fake NVML library is another way to the same machine.

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
