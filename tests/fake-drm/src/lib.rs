//! Simulated `/sys` and `/proc` files of machines with AMD and Intel GPUs, for tests.
//!
//! A [`Tree`] contains the files of a machine. [`products`] provides its cards, [`Process`] the
//! programs that use them, and [`kfd`] the compute nodes for `ROCm`. [`scenario`] combines all of
//! these into whole machines. All values are invented, in the formats of the kernel drivers. All
//! functions panic if the files cannot be written.

#![allow(clippy::missing_panics_doc)]

mod card;
pub mod kfd;
mod metrics;
mod opened;
mod process;
pub mod products;
pub mod scenario;
mod tree;

pub use card::{Card, CardFiles};
pub use metrics::MetricsTable;
pub use opened::{FORBIDDEN_FILES, OpenedFiles};
pub use process::{Client, Process};
pub use tree::Tree;
