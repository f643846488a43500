//! Calls to NVML, which are the only unsafe code in this crate.
//!
//! [`Library`] looks up functions by the names and types in [`function`]. Functions that older
//! drivers lack return
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
pub(super) use gpm::GpmSample;
pub(in super::super) use library::Library;
pub(super) use library::{Device, Function, Plain, text};
pub(super) use plain::numbers;
pub(super) use shapes::{IntoValue, Shape};
