//! Recordings: records of the collector in a file, and their way back.
//!
//! A recording is a sequence of [`block`]s, each a gzip member of its own with the records of a few
//! seconds as they are printed by `gpumon collect`, one a line. So `zcat` prints a recording, a
//! file that was cut off is whole up to its last block, and whoever looks for a moment reads the
//! head of each block alone.
//!
//! - [`Writer`] makes blocks, [`Files`] puts them into files that are rotated.
//! - [`Recording`] is what was recorded, also by `gpumon collect > FILE`; [`Player`] plays it at
//!   any speed, from any moment.
//!
//! It knows no terminal and no clock but that of [`Player`].

#![forbid(unsafe_code)]

pub mod block;
mod error;
mod files;
mod index;
mod line;
mod player;
mod recording;
#[cfg(test)]
mod tests;
mod writer;

pub use error::BadRecording;
pub use files::{Files, FilesError, Limits};
pub use line::{Kind, Line, stamp};
pub use player::{Played, Player, SPEEDS};
pub use recording::{Cut, Lines, Recording};
pub use writer::{Writer, pack_record};
