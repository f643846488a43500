//! The table that `gpumon` prints: a head, a line per GPU, a line per process.
//!
//! The text carries ANSI styles; whoever prints it strips them where they are not wanted.

mod bar;
mod gpus;
mod processes;
mod style;
mod units;

use gpumon_probe::model::{Inventory, Reading, Sample, SourceKind};

use self::style::{DIM, SIMULATED, STRONG, paint};

/// How much room there is, and what may fill it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Columns.
    pub(crate) width: usize,
    /// On a terminal that shows block characters. Without it the text is ASCII, and nothing is cut to the width.
    pub(crate) rich: bool,
}

/// The whole table, each line ended.
pub(crate) fn render(inventory: &Inventory, sample: &Sample, layout: Layout) -> String {
    let mut lines = vec![head(inventory), String::new()];
    lines.extend(gpus::lines(inventory, sample, layout));
    lines.push(String::new());
    lines.extend(processes::lines(sample, layout));
    lines.join("\n") + "\n"
}

/// What this is: `gpumon  driver 580.159.04  CUDA 13.0  2 x H200  host`.
fn head(inventory: &Inventory) -> String {
    let mut parts = vec![paint(STRONG, "gpumon")];
    match inventory.platform.source {
        SourceKind::Simulated => parts.push(paint(SIMULATED, "simulated")),
        SourceKind::Nvml => {
            let said = |word: &str, reading: &Reading<String>| reading.value().map(|value| format!("{word} {value}"));
            parts.extend(said("driver", &inventory.platform.driver_version));
            parts.extend(said("CUDA", &inventory.platform.cuda_version));
        }
    }
    parts.push(models(inventory));
    parts.push(paint(DIM, &inventory.hostname));
    parts.join("  ")
}

/// `2 x H200`, or `1 x H200 + 1 x L40S`, in the order in which they come.
fn models(inventory: &Inventory) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for gpu in &inventory.gpus {
        let name = short_name(&gpu.name);
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.iter().map(|(name, count)| format!("{count} x {name}")).collect::<Vec<_>>().join(" + ")
}

/// A GPU's name without the maker's, which is the same for all.
fn short_name(name: &Reading<String>) -> String {
    name.value().map_or_else(|| "unknown GPU".to_owned(), |name| name.trim_start_matches("NVIDIA ").to_owned())
}

#[cfg(test)]
mod tests;
