//! `gpumon oom list`: what can be shown.

use std::io::{self, Write};

use gpumon_workload::oom;

use crate::exit::Failure;

/// Prints what there is: for people what one sees, for programs one object a line.
pub(super) fn print(json: bool) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    for scenario in oom::all() {
        if json {
            serde_json::to_writer(&mut out, scenario).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{:12}{}", scenario.id, scenario.shows)?;
        }
    }
    Ok(())
}
