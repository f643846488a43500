//! What Prometheus is to scrape: [`targets`] in the form of its `file_sd` and `http_sd`, and
//! [`slurm`] is which nodes of a cluster have GPUs.

pub mod slurm;
mod targets;

pub use targets::{Label, LabelError, MOST_TARGETS, Target, TargetGroup, groups};
