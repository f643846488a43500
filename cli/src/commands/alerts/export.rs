//! `gpumon alerts export`: the rules for Prometheus.

use std::{
    io::{self, Write},
    path::Path,
};

use gpumon_alerts::prometheus;

use crate::exit::{Failure, say};

pub(super) fn run(file: &Path) -> Result<(), Failure> {
    let rules = super::read(file)?;
    let exported = prometheus::export(&rules);
    io::stdout().write_all(exported.text.as_bytes())?;
    for note in exported.notes {
        say(&note);
    }
    Ok(())
}
