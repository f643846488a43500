//! Simulated GPUs: a believable machine that needs no hardware, and a stage for tests.
//!
//! - [`Scenario`] says what there is and what happens; [`Scenario::simple`] needs no file.
//! - [`World`] answers what a GPU does at a moment: a pure function, the same for the same seed.
//! - [`Timeline`] says which moment it is.
//! - [`SimSource`] is the source behind `--source sim`; gpumon's fake NVML library speaks for the same world.

mod board;
mod device;
mod energy;
mod functions;
mod noise;
mod people;
mod profile;
mod scenario;
mod state;
mod tenancy;
mod thermal;
mod timeline;
mod world;

pub use board::{MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ};
pub use device::SimSource;
pub use energy::Meters;
pub use functions::FUNCTIONS;
pub use scenario::{Profile, Scenario, ScenarioError};
pub use state::{Counters, GpuIdentity, GpuState, ProcessState};
pub use timeline::Timeline;
pub use world::World;
