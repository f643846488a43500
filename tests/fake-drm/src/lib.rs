//! Files of `/sys` and `/proc` on a machine with GPUs of AMD and Intel, for tests.
//!
//! A [`Tree`] is such a machine. [`products`] has its cards, [`Process`] the programs that use
//! them, and [`kfd`] the nodes on which `ROCm` computes. [`scenario`] puts whole machines together.
//! All values are our own, in the forms that the kernel's drivers write. Every function panics if
//! the tree cannot be written.

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
pub use metrics::Metrics;
pub use opened::{FORBIDDEN, OpenedFiles};
pub use process::{Client, Process};
pub use tree::Tree;
