//! `gpumon bench list`: what can be run.

use std::io::{self, Write};

use gpumon_workload::catalogue;

use crate::exit::Failure;

/// Prints what there is: for people what it does and teaches, for programs one object a line.
pub(super) fn print(json: bool) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    for about in catalogue::all() {
        if json {
            serde_json::to_writer(&mut out, about).map_err(io::Error::from)?;
            writeln!(out)?;
            continue;
        }
        let join = |names: Vec<String>| names.join(", ");
        let backends = join(about.backends.iter().map(ToString::to_string).collect());
        let dtypes = join(about.dtypes.iter().map(ToString::to_string).collect());
        let types = if dtypes.is_empty() {
            String::new()
        } else {
            format!("; {dtypes}")
        };
        writeln!(
            out,
            "{:20}{} ({backends}{types})",
            about.id,
            about.does.trim_end_matches('.')
        )?;
        writeln!(out, "{:20}{}", "", about.teaches)?;
    }
    Ok(())
}
