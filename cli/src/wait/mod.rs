//! What `gpumon wait` is made of.
//!
//! - [`condition`] is what is waited for.
//! - [`reader`] reads the GPUs, from a running server or from a collector of its own, so that this
//!   process never enters the driver; [`candidate`] is what one of them offers, and which of them
//!   are asked for.
//! - [`lock`] keeps two waiters from taking the same one.
//! - [`search`] puts these together, [`progress`] tells how it goes, and [`hand_over`] gives away
//!   what was found.

mod candidate;
mod condition;
mod hand_over;
mod lock;
mod progress;
mod reader;
mod search;

pub(crate) use self::{
    candidate::Choice,
    condition::{Conditions, WantedMemory},
    hand_over::{Format, check, hand_over, not_started, run},
    lock::{HOLD, Locks},
    progress::Progress,
    reader::Reader,
    search::{Patience, Search, find},
};
