//! Tests of all outputs with failing queries: one query fails at a time, with each return code.

mod difference;
mod machines;
mod return_codes;
pub(crate) mod scripted;
mod smoothing;
mod views;
