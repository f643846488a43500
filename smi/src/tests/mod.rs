//! Every form over answers that fail: one query at a time, with each return code.

mod difference;
mod machines;
mod return_codes;
pub(crate) mod scripted;
mod smoothing;
mod views;
