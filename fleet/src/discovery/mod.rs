//! Service discovery for Prometheus: [`targets`] writes lists of scrape targets in the format of
//! `file_sd` and `http_sd`, and [`slurm`] lists a Slurm cluster's GPU nodes.

pub mod slurm;
mod targets;

pub use targets::{Label, LabelError, MAX_TARGETS, Target, TargetGroup, group_targets};
