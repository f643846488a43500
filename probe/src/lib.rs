//! The probe: what a GPU and its host can tell, read into one vocabulary.
//!
//! - [`model`] is the vocabulary: what every other room of gpumon speaks.
//! - [`source`] is where readings come from: NVML, a simulation, the host.
//! - [`sampler`] decides when each thing is read, with one thread per GPU.
//! - [`derive`] makes of samples what no single reading tells: rates, conditions, events.
//! - [`owner`] tells whose process a PID is.
//! - [`bounded`] reads files whose length somebody else decides.
//! - [`xid`] says what the driver's error numbers mean.
//!
//! The probe knows no async runtime, no network and no terminal.

pub mod bounded;
pub mod derive;
pub mod model;
pub mod owner;
pub mod question;
pub mod sampler;
pub mod source;
mod thread;
pub mod xid;
