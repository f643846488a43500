//! Lists of scrape targets for Prometheus: [`targets`] in the format of `file_sd` and `http_sd`,
//! and [`slurm`] for the nodes of a cluster with GPUs.

pub mod slurm;
mod targets;

pub use targets::{Label, LabelError, MOST_TARGETS, Target, TargetGroup, groups};
