//! The screen of a single process: charts of its resource usage, followed by its details.

mod details;

use gpumon_probe::model::{Absence, GpuSample, Process, Reading, fields::Unit};
use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::{Constraint, Layout, Rect},
    widgets::{Clear, Widget},
};

use super::{KeyEffect, Scroll, draw_scrolled_lines};
use crate::terminal::units::format_optional;
use crate::top::{
    history::{ChartLine, DEPTH_MS, History, Window},
    inspect::{Inspection, ProcessAttributes},
    keys::{self, Action},
    layout::{choose_grid, find_grid_field},
    metrics::ChartUnit,
    model::Model,
    painter::{Hit, Painter},
    panel,
    plot::Plot,
    processes::ProcessKey,
    state::State,
};

pub(in crate::top) use self::details::process_name;

#[allow(clippy::struct_excessive_bools)]
pub(in crate::top) struct ProcessScreen {
    pub(in crate::top) key: ProcessKey,
    /// The process as it was in the last sample that contained it.
    process: Process,
    is_there: bool,
    /// The result of reading the attributes from `/proc`, or `None` until they have been read.
    pub(in crate::top) found: Option<Result<ProcessAttributes, String>>,
    pub(in crate::top) is_asked: bool,
    past: ProcessHistory,
    are_secrets_shown: bool,
    /// Whether the screen should scroll to the environment as soon as it has been read.
    seeks_environment: bool,
    pub(super) scroll: Scroll,
}

impl ProcessScreen {
    pub(in crate::top) fn new(key: ProcessKey, process: Process, seeks_environment: bool) -> Self {
        Self {
            key,
            process,
            is_there: true,
            found: None,
            is_asked: false,
            past: ProcessHistory::default(),
            are_secrets_shown: false,
            seeks_environment,
            scroll: Scroll::default(),
        }
    }

    /// Updates the process from the newest sample if the sample contains it.
    pub(in crate::top) fn update(&mut self, model: &Model) {
        let now = model
            .find_gpu(self.key.gpu)
            .and_then(|gpu| gpu.processes.value());
        let is_it = |process: &&Process| {
            process.pid == self.key.pid
                && process.mig == self.key.mig
                && process.started_ms.value().copied() == self.key.started_ms
        };
        let now = now.and_then(|all| all.iter().find(is_it));
        self.is_there = now.is_some();
        if let Some(process) = now {
            self.process = process.clone();
        }
        self.past.push_sample(model, self.key.gpu, now);
    }

    pub(in crate::top) fn apply_inspection(&mut self, inspection: Inspection, interval_ms: u32) {
        self.is_asked = false;
        if let Ok(attributes) = &inspection.found {
            self.past.push_attributes(attributes, interval_ms);
        }
        self.found = Some(inspection.found);
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> KeyEffect {
        match key.code {
            KeyCode::Char('s') => self.are_secrets_shown = !self.are_secrets_shown,
            KeyCode::Char('e') => self.seeks_environment = true,
            KeyCode::Enter | KeyCode::Char('i') => return KeyEffect::Leave,
            _ if self.scroll.handle_key(key) => {}
            _ => {
                if let Some(
                    action @ (Action::Signal(_) | Action::LongerRange | Action::ShorterRange),
                ) = keys::find_action(key)
                {
                    return KeyEffect::Act(action);
                }
            }
        }
        KeyEffect::Stay
    }

    pub(super) fn draw(
        &mut self,
        painter: &mut Painter<'_>,
        screen: Rect,
        model: &Model,
        state: &State,
    ) {
        // The title of the main screen stays visible, because it shows whether values are
        // simulated, delayed, or paused.
        let [_, heading, between, footer] =
            Layout::vertical([1, 1, screen.height.saturating_sub(3), 1].map(Constraint::Length))
                .areas(screen);
        let all = Rect {
            height: screen.height - 1,
            ..heading
        };
        Clear.render(all, painter.buffer);
        painter.highlight(all, painter.theme.plain);
        painter.add_clickable_area(screen, Hit::Dialog(0));
        let theme = painter.theme;
        let title = format!("{}: {}", self.process.pid, process_name(&self.process));
        painter.draw_pieces(
            heading.x,
            heading.y,
            heading.width,
            &[("Process ", theme.dim), (&title, theme.strong)],
        );
        // After the process has ended, the charts remain visible and show its history.
        let height = (between.height * 2 / 5).max(4).min(between.height);
        let [above, below] =
            Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(between);
        // The history of a process is recorded only while its screen is open and is limited to
        // `DEPTH_MS`, so the charts cover at most this time.
        draw_process_charts(
            painter,
            above,
            self,
            model,
            state.chart_span_ms().min(DEPTH_MS),
        );
        let (lines, environment) = details::format_details(painter, below.width, self, model);
        if self.seeks_environment && environment.is_some() {
            self.seeks_environment = false;
            self.scroll = Scroll(environment.unwrap_or(0));
        }
        if !panel::draw_notice(painter, footer, state) {
            let secrets = if self.are_secrets_shown {
                "mask secrets"
            } else {
                "show secrets"
            };
            let keys = [
                ("esc", "back"),
                ("s", secrets),
                ("e", "environment"),
                ("T I K", "signal"),
                ("[ ]", "range"),
            ];
            let keys = keys.map(|(key, what)| {
                [
                    (key, theme.strong),
                    (" ", theme.plain),
                    (what, theme.dim),
                    ("  ", theme.plain),
                ]
            });
            painter.draw_pieces(footer.x, footer.y, footer.width, keys.as_flattened());
        }
        draw_scrolled_lines(painter, below, &lines, &mut self.scroll, footer);
    }
}

/// The histories of a single process since its screen was opened. Samples and values from `/proc`
/// arrive at different times, so they have separate histories.
#[derive(Default)]
struct ProcessHistory {
    of_samples: History,
    of_disk: History,
    /// The time of the previous reading of disk traffic, and the number of bytes that the process
    /// had read and written by then.
    before: Option<(u64, u64)>,
    /// The newest values of GPU memory, SM utilization, power share, CPU usage, and host memory.
    newest: [Option<f64>; 5],
    disk: Option<f64>,
}

impl ProcessHistory {
    fn push_sample(&mut self, model: &Model, gpu: u32, process: Option<&Process>) {
        let Some((sample, process)) = model.sample.as_ref().zip(process) else {
            self.newest = [None; 5];
            return;
        };
        let power = model
            .find_gpu(gpu)
            .and_then(|gpu| calculate_power_share(gpu, process).ok());
        let memory = process.memory_bytes.value().map(|bytes| *bytes as f64);
        let host_memory = process.host_memory_bytes.value().map(|bytes| *bytes as f64);
        let cpu = model
            .usage
            .get(&process.pid)
            .and_then(|usage| usage.cpu_percent);
        self.newest = [
            memory,
            process.sm_percent.value().copied(),
            power,
            cpu,
            host_memory,
        ];
        self.of_samples
            .push_values(sample.at_ms, sample.interval_ms, &self.newest);
    }

    fn push_attributes(&mut self, attributes: &ProcessAttributes, interval_ms: u32) {
        let now = attributes
            .disk_bytes
            .as_ref()
            .ok()
            .map(|bytes| (attributes.at_ms, *bytes));
        let before = std::mem::replace(&mut self.before, now)
            .zip(now)
            .filter(|(before, now)| before.0 < now.0);
        self.disk = before.map(|((begun_ms, before), (at_ms, after))| {
            after.saturating_sub(before) as f64 * 1000.0 / (at_ms - begun_ms) as f64
        });
        self.of_disk
            .push_values(attributes.at_ms, interval_ms, &[self.disk]);
    }
}

/// Returns the share of the GPU's power that is attributed to the process. It equals the process's
/// share of all SM time. Returns the reason if the share is unknown.
fn calculate_power_share(gpu: &GpuSample, process: &Process) -> Result<f64, String> {
    if process.mig.is_some() {
        return Err("power is not measured per MIG device".to_owned());
    }
    let known = |reading: &Reading<f64>| match reading {
        Reading::Now(value) | Reading::Earlier { value, .. } => Ok(*value),
        Reading::Absent(reason) => Err(reason.to_string()),
    };
    let (draw, own) = (known(&gpu.power.draw_watts)?, known(&process.sm_percent)?);
    let processes = gpu.processes.value().into_iter().flatten();
    let all: f64 = processes
        .filter_map(|process| process.sm_percent.value())
        .sum();
    if all > 0.0 {
        Ok(draw * own / all)
    } else {
        Err(
            "no process uses the SMs, so the power cannot be divided among the processes"
                .to_owned(),
        )
    }
}

fn draw_process_charts(
    painter: &mut Painter<'_>,
    area: Rect,
    screen: &ProcessScreen,
    model: &Model,
    span_ms: u64,
) {
    let gpu = model.find_gpu(screen.key.gpu);
    let total = gpu
        .and_then(|gpu| gpu.memory.total_bytes.value())
        .map(|bytes| *bytes as f64);
    let limit = gpu.and_then(|gpu| gpu.power.limit_watts.value()).copied();
    let unread = match &screen.found {
        Some(Err(why)) => Some(why.clone()),
        _ => None,
    };
    let disk = match &screen.found {
        Some(Ok(attributes)) => attributes.disk_bytes.as_ref().err().cloned(),
        _ => unread.clone(),
    };
    let process = &screen.process;
    let cpu = unread.or_else(|| {
        Some("not measured yet; CPU time is measured for at most 512 processes".to_owned())
    });
    let (memory, sm) = (process.memory_bytes.absence(), process.sm_percent.absence());
    let host_memory = process.host_memory_bytes.absence();
    let reason = |absence: Option<&Absence>| absence.map(ToString::to_string);
    let power = gpu.and_then(|gpu| calculate_power_share(gpu, process).err());
    let past = &screen.past;
    let of = |place: usize| (&past.of_samples, past.newest[place], ChartLine::Own(place));
    let charts = [
        ("CPU", Unit::Percent, None, cpu, of(3)),
        ("Host memory", Unit::Bytes, None, reason(host_memory), of(4)),
        (
            "Disk I/O",
            Unit::BytesPerSecond,
            None,
            disk,
            (&past.of_disk, past.disk, ChartLine::Own(0)),
        ),
        ("SM", Unit::Percent, None, reason(sm), of(1)),
        ("GPU memory", Unit::Bytes, total, reason(memory), of(0)),
        ("Power share", Unit::Watts, limit, power, of(2)),
    ];
    let Some(shape) = choose_grid(area, charts.len()) else {
        return;
    };
    for (place, (title, unit, limit, reason, (history, now, line))) in
        charts.into_iter().enumerate()
    {
        if place >= usize::from(shape.0 * shape.1) {
            break;
        }
        let now = now.filter(|_| screen.is_there);
        let style = unit.style(painter.theme);
        let now = format_optional(now, |now| unit.format(now, painter.glyphs));
        let plot = Plot {
            title: title.to_owned(),
            now: vec![(now, style)],
            style,
            unit,
            limit,
            span_ms,
            end_ms: model.now_ms(),
            values: &|columns| {
                history.read_line_values(
                    line,
                    Window {
                        end_ms: model.now_ms(),
                        span_ms,
                        columns,
                    },
                )
            },
            overlay: None,
            stack: None,
            reason,
            is_selected: true,
        };
        plot.draw(painter, find_grid_field(area, shape, place as u16));
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::MigInstance;

    use super::*;
    use crate::top::testing;

    #[test]
    fn unknown_power_share_of_process_has_specific_reason() {
        let gpu = testing::simulated_model(1).gpus()[0].clone();
        let process = gpu.processes.value().unwrap()[1].clone();
        assert!(calculate_power_share(&gpu, &process).is_ok());
        let share = |change: &dyn Fn(&mut GpuSample, &mut Process)| {
            let (mut gpu, mut process) = (gpu.clone(), process.clone());
            change(&mut gpu, &mut process);
            calculate_power_share(&gpu, &process).unwrap_err()
        };
        let mig = Some(MigInstance {
            gpu_instance: 1,
            compute_instance: 0,
        });
        assert!(share(&|_, process| process.mig = mig).contains("MIG"));
        let absent = Absence::NotSupported;
        assert_eq!(
            share(&|gpu, _| gpu.power.draw_watts = Reading::Absent(absent.clone())),
            absent.to_string()
        );
        assert_eq!(
            share(&|_, process| process.sm_percent = Reading::Absent(absent.clone())),
            absent.to_string()
        );
        assert!(
            share(&|gpu, _| gpu.processes = Reading::Now(Vec::new()))
                .contains("no process uses the SMs")
        );
    }
}
