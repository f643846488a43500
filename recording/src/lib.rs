//! Recordings of the collector's records, and their playback.
//!
//! A recording is a sequence of [`block`]s. Each block is a gzip member with the records of a few
//! seconds, one per line, as printed by `gpumon collect`. Therefore `zcat` prints a recording, a
//! truncated file is readable up to its last whole block, and a search for a moment reads only the
//! heads of the blocks.
//!
//! - [`Writer`] builds blocks, and [`Files`] writes them to files and rotates the files.
//! - [`Recording`] reads recordings, and also the output of `gpumon collect > FILE`.
//! - [`Player`] plays recordings at any speed, from any moment.
//!
//! The crate does not depend on a terminal.

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
