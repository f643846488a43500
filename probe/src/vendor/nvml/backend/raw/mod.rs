//! The calls of NVML. The only unsafe code of the probe.
//!
//! [`Library`] looks up what is asked for, by the names and types in [`function`]; what an older
//! driver does not have is
//! [`Code::FUNCTION_NOT_FOUND`](crate::vendor::nvml::query::Code::FUNCTION_NOT_FOUND).

mod calls;
mod counters;
mod events;
pub(super) mod function;
mod gpm;
mod library;
mod lists;
mod plain;
mod processes;
mod shapes;

pub(super) use counters::{Field, Number};
pub(in super::super) use events::EventSet;
pub use function::FUNCTIONS;
pub(super) use gpm::Sample;
pub(in super::super) use library::Library;
pub(super) use library::{Device, Function, Plain, text};
pub(super) use plain::numbers;
pub(super) use shapes::{IntoValue, Shape};
