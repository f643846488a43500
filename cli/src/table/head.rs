//! The first line of the table, with the driver, the GPU models, the machine, and the time.

use gpumon_probe::model::Inventory;
use unicode_width::UnicodeWidthStr;

use super::View;

use crate::describe;
use crate::terminal::{
    Layout,
    line::{Line, make_printable},
    style::{DIM, PLAIN, SIMULATED, STRONG},
    units::format_clock,
};

const GAP: usize = 2;

/// Formats the first line, such as `gpumon  driver 580.159.04  CUDA 13.0  2 x H200  host 10:42:07`.
pub(super) fn format_head_line(view: &View<'_>, layout: Layout) -> Line {
    let inventory = view.inventory;
    let mut parts = vec![(STRONG, "gpumon".to_owned())];
    if inventory.platform.is_simulated {
        parts.push((SIMULATED, "simulated".to_owned()));
    } else {
        parts.extend(
            inventory
                .platform
                .versions()
                .into_iter()
                .map(|version| (PLAIN, version)),
        );
    }
    let time = format_clock(view.sample.at_ms, view.sample.at_ms);
    let room = layout.columns().saturating_sub(time.len() + GAP);
    let taken: usize = parts.iter().map(|(_, text)| text.width() + GAP).sum();
    let models = format_models(inventory);
    let fits = layout.width.is_none() || taken + models.width() <= room;
    parts.push((
        PLAIN,
        if fits {
            models
        } else {
            format!("{} GPUs", inventory.gpus.len())
        },
    ));
    parts.push((DIM, inventory.hostname.clone()));
    // The parts are in order of importance. From the first part that does not fit, the parts are
    // omitted.
    let mut line = Line::default();
    for (style, text) in parts {
        let part = Line::new(style, make_printable(&text, layout));
        let gap = if line.width() == 0 { 0 } else { GAP };
        if layout.width.is_some() && line.width() + gap + part.width() > room {
            break;
        }
        line.push(PLAIN, " ".repeat(gap));
        line.extend(part);
    }
    if line.width() + GAP + time.len() <= layout.columns() || layout.width.is_none() {
        let gap = layout
            .columns()
            .saturating_sub(line.width() + time.len())
            .max(GAP);
        line.push(PLAIN, " ".repeat(gap));
        line.push(DIM, time);
    }
    line
}

/// Returns the GPU models in the order of their first GPU, such as `2 x H200` or `1 x H200 + 1 x
/// L40S`.
fn format_models(inventory: &Inventory) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for gpu in &inventory.gpus {
        let name = describe::format_name_without_vendor(Some(&gpu.name));
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
        .iter()
        .map(|(name, count)| format!("{count} x {name}"))
        .collect::<Vec<_>>()
        .join(" + ")
}
