//! Simulated GPUs, for tests and for demonstrations without hardware.
//!
//! - [`Scenario`] describes the GPUs and the events, either from a file or with default values.
//! - [`World`] calculates the state of a GPU at a certain time. The state is a pure function of the
//!   scenario, including its seed, and the time.
//! - [`Timeline`] is the clock, and [`Machine`] adds counters that grow over time.
//! - [`start_simulation`] creates the source for `--source sim`, in which [`answer_query`] replaces
//!   NVML. gpumon's fake NVML library uses the same machine.

mod answers;
mod backend;
mod board;
mod hardware;
mod identity;
mod noise;
mod processes;
mod profile;
mod scenario;
mod simulation;
mod state;

pub use super::nvml::FUNCTIONS;
pub use answers::{SimulatedGpu, answer_query};
pub use backend::start_simulation;
pub use hardware::{
    Architecture, LinkState, MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ, NVLINK_MB_PER_SECOND,
};
pub use identity::GpuIdentity;
pub use scenario::{EncoderSession, GivenAnswer, Profile, Scenario, ScheduledEvent};
pub use simulation::{Machine, RecordedValue, Timeline, Totals, World};
pub use state::{Counters, EccErrors, GpuState, MigState, ProcessState, Wear};
