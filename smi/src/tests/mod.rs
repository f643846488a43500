//! Tests of all outputs with failing queries: each query fails with each return code, one at a
//! time.

mod difference;
mod machines;
mod return_codes;
pub(crate) mod scripted;
mod smoothing;
mod views;
