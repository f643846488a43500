//! The table that `gpumon` prints, with a first line, one or two lines per GPU, and a line per
//! process. Alternatively, the short view, which is similar to gpustat's output.
//!
//! The text contains ANSI styles, which the caller removes if necessary.

pub(crate) mod processes;
mod short;

use gpumon_history::timeline::{TimePoint, Timeline};
use gpumon_probe::model::{Gpu, GpuSample, Health, Inventory, Sample, fields::Kind};
use gpumon_server::frame::History;
use unicode_width::UnicodeWidthStr;

use self::processes::Widths;
use crate::{
    describe::{self, Thresholds, Total, sum_gpu_readings},
    gpu_lines::{Arrangement, CellWidths, GpuCells, GpuLines, LineContext, LineOptions, Role},
    options::ShownProcesses,
    terminal::{
        Layout,
        line::{
            DIM, Line, NOTICE, PLAIN, SIMULATED, STRONG, UTILIZATION, choose_level_style,
            choose_load_bar_style, choose_load_style, make_printable,
        },
        screen::average_by_column,
        units::{format_clock, format_energy_with_cost},
    },
};

pub(crate) use self::{
    processes::{GOOD_LABEL_WIDTH, MIN_LABEL_WIDTH},
    short::ShortPart,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) sample: &'a Sample,
    /// The known utilization values of the last minute.
    pub(crate) past: &'a UtilizationHistory,
    /// Whether there is only one sample. A single sample has no conditions, because they are
    /// detected over several samples.
    pub(crate) is_one_shot: bool,
    pub(crate) thresholds: Thresholds,
    /// A notice about the whole table, such as a paused server.
    pub(crate) notice: Option<&'a str>,
    /// Whether the table has a line of totals.
    pub(crate) with_total: bool,
    /// The limits on the listed processes; `None` if all processes are listed.
    pub(crate) listed: Option<&'a ShownProcesses>,
}

impl<'a> View<'a> {
    fn find_board(&self, index: u32) -> Option<&'a Gpu> {
        let mut known = self.inventory.gpus.iter();
        known.find(|known| known.index == index)
    }
}

/// Returns the table as complete lines. If the table is updated in place, `kept` contains the
/// column widths of the previous update.
pub(crate) fn render(
    view: &View<'_>,
    layout: Layout,
    mut kept: Option<&mut ColumnWidths>,
) -> String {
    let mut lines = vec![format_head_line(view, layout)];
    lines.extend(
        view.notice
            .map(|notice| Line::new(NOTICE, make_printable(notice, layout))),
    );
    lines.push(Line::default());
    lines.extend(format_gpu_lines(view, layout, kept.as_deref_mut()));
    lines.extend(view.with_total.then(|| format_total_line(view)));
    lines.push(Line::default());
    lines.extend(processes::format_lines(view, layout, kept));
    join_lines(lines, layout)
}

/// Returns the short view, similar to gpustat's output: one line per GPU with its users, the memory
/// of their processes, and the additional `parts`.
pub(crate) fn render_short(view: &View<'_>, layout: Layout, parts: &[ShortPart]) -> String {
    let total = view.with_total.then(|| format_total_line(view));
    join_lines(
        short::format_lines(view, layout, parts)
            .into_iter()
            .chain(total)
            .collect(),
        layout,
    )
}

/// Joins the lines. If they exceed the height of the terminal, a note with the number of missing
/// lines replaces the last lines.
fn join_lines(mut lines: Vec<Line>, layout: Layout) -> String {
    if let Some(height) = layout.height.filter(|height| lines.len() > *height) {
        let shown = height.saturating_sub(1);
        let missing = lines.len() - shown;
        lines.truncate(shown);
        let rows = if missing == 1 { "row" } else { "rows" };
        lines.push(Line::new(
            DIM,
            format!("{missing} more {rows}: enlarge the window"),
        ));
    }
    lines
        .into_iter()
        .map(|line| line.paint(layout) + "\n")
        .collect()
}

/// Formats the lines of GPUs and MIG devices.
fn format_gpu_lines(view: &View<'_>, layout: Layout, kept: Option<&mut ColumnWidths>) -> Vec<Line> {
    let context = build_phrase_context(view, layout);
    let (mut rows, mut pasts) = (Vec::new(), Vec::new());
    for gpu in &view.sample.gpus {
        let board = view.find_board(gpu.index);
        rows.push(GpuCells::from_gpu(gpu, board, None, &context));
        pasts.push(view.past.gpu_values(gpu));
        for part in gpu.mig_devices.value().into_iter().flatten() {
            let device = board.and_then(|board| describe::find_mig_device(board, part.instance));
            rows.push(GpuCells::from_mig_device(part, device, gpu, &context));
            pasts.push(Vec::new());
        }
    }
    let mut widths = CellWidths::new(&rows);
    let is_steady = kept.is_some();
    if let Some(kept) = kept {
        widths = widths.merge_max(&kept.gpus);
        kept.gpus = widths;
    }
    let options = LineOptions {
        columns: layout.columns(),
        has_past: view.past.has_values() || is_steady,
        is_steady,
        may_break: true,
    };
    let arrangement = Arrangement::new(&rows, &widths, options);
    let columns = arrangement.sparkline_width();
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
    let rows = rows.iter().zip(&pasts).flat_map(|(cells, past)| {
        let past = average_by_column(past, view.sample.at_ms, MAX_HISTORY_MS, columns);
        let past: Vec<_> = past.into_iter().map(share).collect();
        let lines = GpuLines {
            cells,
            widths: &widths,
            arrangement: &arrangement,
            layout,
        };
        lines.draw(&past)
    });
    rows.map(|line| line.map(role_style)).collect()
}

fn build_phrase_context(view: &View<'_>, layout: Layout) -> LineContext {
    LineContext {
        thresholds: view.thresholds,
        layout,
        phrases: describe::Context {
            now_ms: view.sample.at_ms,
            is_one_shot: view.is_one_shot,
        },
    }
}

fn role_style(role: Role) -> anstyle::Style {
    match role {
        Role::Plain => PLAIN,
        Role::Name => STRONG,
        Role::Dim => DIM,
        Role::Past => UTILIZATION,
        Role::Number(load) => choose_load_style(load),
        Role::Bar(load) => choose_load_bar_style(load),
        Role::Words(level) => choose_level_style(level),
    }
}

/// The width of the gap between two parts of the first line.
const HEAD_GAP: usize = 2;

/// Formats the first line, such as `gpumon  driver 580.159.04  CUDA 13.0  2 x H200  host 10:42:07`.
fn format_head_line(view: &View<'_>, layout: Layout) -> Line {
    let inventory = view.inventory;
    let mut parts = vec![(STRONG, "gpumon".to_owned())];
    if inventory.platform.is_simulated {
        parts.push((SIMULATED, "simulated".to_owned()));
    } else {
        parts.extend(
            inventory
                .platform
                .driver_and_cuda_versions()
                .into_iter()
                .map(|version| (PLAIN, version)),
        );
    }
    let time = format_clock(view.sample.at_ms, view.sample.at_ms);
    let room = layout.columns().saturating_sub(time.len() + HEAD_GAP);
    let taken: usize = parts.iter().map(|(_, text)| text.width() + HEAD_GAP).sum();
    let models = describe::format_models(inventory);
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
    // The parts are in order of importance. The first part that does not fit is omitted, together
    // with all parts after it.
    let mut line = Line::default();
    for (style, text) in parts {
        let part = Line::new(style, make_printable(&text, layout));
        let gap = if line.width() == 0 { 0 } else { HEAD_GAP };
        if layout.width.is_some() && line.width() + gap + part.width() > room {
            break;
        }
        line.push(PLAIN, " ".repeat(gap));
        line.extend(part);
    }
    if line.width() + HEAD_GAP + time.len() <= layout.columns() || layout.width.is_none() {
        let gap = layout
            .columns()
            .saturating_sub(line.width() + time.len())
            .max(HEAD_GAP);
        line.push(PLAIN, " ".repeat(gap));
        line.push(DIM, time);
    }
    line
}

/// The largest width that each column has had in any update so far. Columns keep this width, so
/// that no value moves from one update to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnWidths {
    gpus: CellWidths,
    processes: Widths,
}

pub(crate) const MAX_HISTORY_MS: u64 = 60_000;

/// The ID of the charted metric in history.
pub(crate) const UTILIZATION_METRIC: &str = "utilization.gpu_percent";

/// The utilization of every GPU over the last minute, by UUID. The values come from a running
/// server or from earlier updates of the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct UtilizationHistory(Timeline<String>);

impl UtilizationHistory {
    pub(crate) fn from_history(history: &History) -> Self {
        let mut past = Timeline::default();
        for at_ms in history.times_ms.iter().copied() {
            past.push(TimePoint { at_ms, reach_ms: 0 });
        }
        for gpu in &history.gpus {
            let values = gpu
                .metrics
                .get(UTILIZATION_METRIC)
                .into_iter()
                .flatten()
                .enumerate();
            for (place, value) in values.filter_map(|(place, value)| Some((place, (*value)?))) {
                past.column_or_new(gpu.uuid.clone(), Kind::Gauge)
                    .set(place, value.into());
            }
        }
        past.drop_before(past.newest_ms().unwrap_or(0).saturating_sub(MAX_HISTORY_MS));
        Self(past)
    }

    /// Adds a sample and drops values that are too old.
    pub(crate) fn push(&mut self, sample: &Sample) {
        let Self(past) = self;
        let at_ms = sample.at_ms;
        past.drop_after(at_ms.saturating_sub(1));
        past.push(TimePoint { at_ms, reach_ms: 0 });
        let newest = past.time_points().len() - 1;
        for gpu in &sample.gpus {
            // A hung GPU repeats its last values, which have already been added.
            let is_old = gpu.at_ms + 2 * u64::from(sample.interval_ms) < at_ms;
            let value = gpu.utilization.gpu_percent.value().filter(|_| !is_old);
            if let Some((uuid, value)) = gpu.uuid.as_ref().zip(value) {
                past.column_or_new(uuid.clone(), Kind::Gauge)
                    .set(newest, *value);
            }
        }
        past.drop_before(at_ms.saturating_sub(MAX_HISTORY_MS));
    }

    fn has_values(&self) -> bool {
        self.0.columns(..).next().is_some()
    }

    /// Returns the known values of a GPU with their times, oldest first.
    fn gpu_values(&self, gpu: &GpuSample) -> Vec<(u64, f64)> {
        let points = gpu
            .uuid
            .iter()
            .flat_map(|uuid| self.0.column_points(uuid, 0));
        points
            .filter_map(|(moment, value)| Some((moment.at_ms, value?)))
            .collect()
    }
}

/// Formats the totals, such as `Total, 8 GPUs: 63 % mean, 512.3/1128 GiB, 3200/5600 W, 12.3 kWh
/// since driver load`. If some GPUs lack a value, the number of GPUs with the value is shown. GPUs
/// that do not respond are not included.
fn format_total_line(view: &View<'_>) -> Line {
    let all = view.sample.gpus.len();
    let well: Vec<_> = view
        .sample
        .gpus
        .iter()
        .filter(|gpu| gpu.health == Health::Ok)
        .collect();
    let part = |count: usize, text: String| {
        let some = if count < well.len() {
            format!(" ({count} of {})", well.len())
        } else {
            String::new()
        };
        (count > 0).then(|| text + &some)
    };
    let [(busy, percent), (memory, used), (power, draw)] = sum_gpu_readings(&well);
    let joules = Total::new(&well, |gpu| {
        Some((*gpu.power.energy_joules_total.value()?, None))
    });
    let parts = [
        part(busy.count, percent + " mean"),
        part(memory.count, used),
        part(power.count, draw),
        part(
            joules.count,
            format_energy_with_cost(joules.sum) + " since driver load",
        ),
    ];
    let count = if well.len() < all {
        format!("{} of {all}", well.len())
    } else {
        all.to_string()
    };
    let plural = if all == 1 { "" } else { "s" };
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let colon = if parts.is_empty() { "" } else { ": " };
    Line::new(STRONG, format!("Total, {count} GPU{plural}{colon}{parts}"))
}

#[cfg(test)]
pub(crate) mod examples;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod history_tests {
    use gpumon_server::frame::GpuHistory;

    use super::*;
    use crate::table::examples;

    #[test]
    fn sparkline_continues_server_history_with_new_samples() {
        let values = (0..70_u8)
            .map(|second| (second != 69).then_some(f32::from(second)))
            .collect::<Vec<_>>();
        let metrics = [(UTILIZATION_METRIC.to_owned(), values)].into();
        let history = History {
            times_ms: (0..70).map(|second| second * 1000).collect(),
            gpus: vec![GpuHistory {
                uuid: "GPU-0".to_owned(),
                metrics,
                holders: Vec::new(),
            }],
            ..History::default()
        };
        let mut past = UtilizationHistory::from_history(&history);
        let mut sample = examples::example_sample(1);
        sample.at_ms = 71_000;
        sample.gpus[0].at_ms = 71_000;
        past.push(&sample);
        let series = past.gpu_values(&sample.gpus[0]);
        let series: Vec<u64> = series.iter().map(|(at_ms, _)| *at_ms).collect();
        assert_eq!(
            (series.first(), series.last()),
            (Some(&11_000), Some(&71_000))
        );
        assert!(!series.contains(&69_000), "a gap stays one");
        assert!(past.has_values());
    }
}
