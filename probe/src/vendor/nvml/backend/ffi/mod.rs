//! Calls to NVML, which are the only unsafe code in this crate.
//!
//! [`Library`] looks up functions by the names and types in [`function`]. Functions that older
//! drivers lack return
//! [`Code::FUNCTION_NOT_FOUND`](crate::vendor::nvml::query::Code::FUNCTION_NOT_FOUND).

mod calls;
mod events;
pub(super) mod function;
mod library;
mod lists;
mod shapes;
mod structures;

pub use function::FUNCTIONS;

pub(super) use calls::{Field, GpmSample, Number};
pub(crate) use events::EventSet;
pub(crate) use library::Library;
pub(super) use library::{Device, Function, Plain, text};
pub(super) use shapes::{IntoValue, Shape};
pub(super) use structures::numbers;
