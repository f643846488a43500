//! The face of nvidia-smi: the same arguments, the same bytes, the same exit codes.
//!
//! Every form is a function of a [`Context`]: whom to ask, about which GPUs, and when. It gives text; where that goes,
//! how often and how the process ends is decided by who calls it.

mod absence;
mod context;
mod refusal;
#[cfg(test)]
mod script;
mod summary;

pub(crate) use context::Context;
pub(crate) use refusal::Refusal;
