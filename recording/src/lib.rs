//! Recordings of the collector's records, and their playback.
//!
//! A recording is a sequence of [`block`]s. Each block is a gzip member with the records of a few
//! seconds, one per line, as printed by `gpumon collect`. This format has three advantages: `zcat`
//! can print a recording, a truncated file is readable up to its last complete block, and a search
//! for a point in time reads only the heads of the blocks.
//!
//! - [`Writer`] builds blocks, and [`Files`] writes them to files and rotates the files.
//! - [`Recording`] reads recordings, and also the output of `gpumon collect > FILE`.
//! - [`Player`] plays recordings at any speed, from any point in time.
//!
//! The crate does not depend on a terminal.

#![forbid(unsafe_code)]

pub mod block;
mod files;
mod index;
mod player;
mod recording;
#[cfg(test)]
mod tests;

pub use block::{Writer, pack_record};
pub use files::{Files, FilesError, RotationLimits};
pub use player::{PlayedItem, Player, SPEEDS};
pub use recording::{
    Line, Lines, RecordKind, Recording, RecordingError, UnreadablePart, parse_kind_and_time,
};
