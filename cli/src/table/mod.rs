//! The table that `gpumon` prints: a head, a line per GPU, a line per process.
//!
//! The text carries ANSI styles; whoever prints it strips them where they are not wanted.

mod bar;
mod gpus;
mod processes;
pub(crate) mod style;
mod units;

use gpumon_probe::model::{Inventory, Reading, Sample, SourceKind};

use unicode_width::UnicodeWidthStr;

use self::style::{DIM, PLAIN, SIMULATED, STRONG, paint};

/// How much room there is, and what may fill it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Columns, to which everything is cut; `None` where lines may be of any length.
    pub(crate) width: Option<usize>,
    /// Whether lines and degree signs can be shown; otherwise all is ASCII.
    pub(crate) unicode: bool,
}

impl Layout {
    /// The columns to fill. What is as long as it likes looks best at the width of a wide terminal.
    fn columns(self) -> usize {
        self.width.unwrap_or(120)
    }
}

/// The whole table, each line ended.
pub(crate) fn render(inventory: &Inventory, sample: &Sample, layout: Layout) -> String {
    let mut lines = vec![head(inventory, layout), String::new()];
    lines.extend(gpus::lines(inventory, sample, layout));
    lines.push(String::new());
    lines.extend(processes::lines(sample, layout));
    lines.join("\n") + "\n"
}

/// What this is: `gpumon  driver 580.159.04  CUDA 13.0  2 x H200  host`.
fn head(inventory: &Inventory, layout: Layout) -> String {
    let mut parts = vec![(STRONG, "gpumon".to_owned())];
    match inventory.platform.source {
        SourceKind::Simulated => parts.push((SIMULATED, "simulated".to_owned())),
        SourceKind::Nvml => {
            let said = |word: &str, reading: &Reading<String>| reading.value().map(|value| format!("{word} {value}"));
            let versions =
                [said("driver", &inventory.platform.driver_version), said("CUDA", &inventory.platform.cuda_version)];
            parts.extend(versions.into_iter().flatten().map(|version| (PLAIN, version)));
        }
    }
    parts.push((PLAIN, models(inventory)));
    parts.push((DIM, inventory.hostname.clone()));
    // What does not fit is left out whole, the least telling first, which stands last.
    let mut left = layout.width.unwrap_or(usize::MAX);
    let fits = parts.into_iter().take_while(|(_, text)| {
        let fits = text.width() <= left;
        left = left.saturating_sub(text.width() + 2);
        fits
    });
    fits.map(|(style, text)| paint(style, &text)).collect::<Vec<_>>().join("  ")
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
