//! Charts of what a process uses, since its screen was opened.

use gpumon_probe::model::{GpuSample, Process, fields::Unit};
use ratatui::layout::Rect;

use super::ProcessScreen;
use crate::top::{
    history::{History, Line, Window},
    inspect::Facts,
    layout::{field, grid},
    metrics::Drawn,
    model::Model,
    painter::Painter,
    plot::Plot,
    text::ABSENT,
};

/// The numbers of samples and those of `/proc` come at times of their own.
#[derive(Default)]
pub(super) struct Past {
    of_gpu: History,
    of_host: History,
    /// The time, the processor time, and the bytes read and written up to then.
    before: Option<(u64, u64, Option<u64>)>,
    gpu: [Option<f64>; 3],
    host: [Option<f64>; 3],
}

impl Past {
    pub(super) fn follow(&mut self, model: &Model, gpu: u32, process: Option<&Process>) {
        let Some((sample, process)) = model.sample.as_ref().zip(process) else {
            self.gpu = [None; 3];
            return;
        };
        let power = model.gpu(gpu).and_then(|gpu| power_share(gpu, process));
        let memory = process.memory_bytes.value().map(|bytes| *bytes as f64);
        self.gpu = [memory, process.sm_percent.value().copied(), power];
        self.of_gpu.push_own(sample.at_ms, sample.interval_ms, &self.gpu);
    }

    pub(super) fn inspected(&mut self, facts: &Facts, interval_ms: u32) {
        let now = (facts.at_ms, facts.cpu_ms, facts.disk_bytes.as_ref().ok().copied());
        let before = self.before.replace(now).filter(|(at_ms, ..)| *at_ms < now.0);
        let rate = |before: u64, after: u64, begun_ms: u64| {
            after.saturating_sub(before) as f64 * 1000.0 / (facts.at_ms - begun_ms) as f64
        };
        let cpu = before.map(|(at_ms, cpu_ms, _)| rate(cpu_ms, facts.cpu_ms, at_ms) / 10.0);
        let disk = before.and_then(|(at_ms, _, bytes)| Some(rate(bytes?, now.2?, at_ms)));
        self.host = [cpu, facts.resident_bytes.map(|bytes| bytes as f64), disk];
        self.of_host.push_own(facts.at_ms, interval_ms, &self.host);
    }
}

/// The part of the GPU's power that goes with the process's part of all SM time; `None` where nobody uses any.
fn power_share(gpu: &GpuSample, process: &Process) -> Option<f64> {
    let all: f64 = gpu.processes.value()?.iter().filter_map(|process| process.sm_percent.value()).sum();
    (all > 0.0 && process.mig.is_none()).then_some(gpu.power.draw_watts.value()? * process.sm_percent.value()? / all)
}

pub(super) fn draw(painter: &mut Painter<'_>, area: Rect, screen: &ProcessScreen, model: &Model, span_ms: u64) {
    let gpu = model.gpu(screen.key.gpu);
    let total = gpu.and_then(|gpu| gpu.memory.total_bytes.value()).map(|bytes| *bytes as f64);
    let limit = gpu.and_then(|gpu| gpu.power.limit_watts.value()).copied();
    let unread = match &screen.found {
        Some(Err(why)) => Some(why.clone()),
        _ => None,
    };
    let disk = match &screen.found {
        Some(Ok(facts)) => facts.disk_bytes.as_ref().err().cloned(),
        _ => unread.clone(),
    };
    let process = &screen.process;
    let (memory, sm) = (process.memory_bytes.absence(), process.sm_percent.absence());
    let reason = |absence: Option<&gpumon_probe::model::Absence>| absence.map(ToString::to_string);
    let power = reason(sm).or_else(|| Some("no process uses the SMs, by whose time power is shared out".to_owned()));
    let past = &screen.past;
    let of = |history, values: &[Option<f64>; 3], place: usize| (history, values[place], Line::Own(place));
    let charts = [
        ("CPU", Unit::Percent, None, unread.clone(), of(&past.of_host, &past.host, 0)),
        ("Host memory", Unit::Bytes, None, unread, of(&past.of_host, &past.host, 1)),
        ("Disk I/O", Unit::BytesPerSecond, None, disk, of(&past.of_host, &past.host, 2)),
        ("SM", Unit::Percent, None, reason(sm), of(&past.of_gpu, &past.gpu, 1)),
        ("GPU memory", Unit::Bytes, total, reason(memory), of(&past.of_gpu, &past.gpu, 0)),
        ("Power share", Unit::Watts, limit, power, of(&past.of_gpu, &past.gpu, 2)),
    ];
    let Some(shape) = grid(area, charts.len()) else { return };
    for (place, (title, unit, limit, reason, (history, now, line))) in charts.into_iter().enumerate() {
        if place >= usize::from(shape.0 * shape.1) {
            break;
        }
        let now = now.filter(|_| screen.is_there);
        let style = painter.theme.of(unit.meaning());
        let now = now.map_or_else(|| ABSENT.to_owned(), |now| unit.format(now, painter.glyphs));
        let plot = Plot {
            title: title.to_owned(),
            now: vec![(now, style)],
            style,
            unit,
            limit,
            span_ms,
            end_ms: model.now_ms(),
            values: &|columns| history.values(line, Window { end_ms: model.now_ms(), span_ms, columns }),
            overlay: None,
            reason,
            is_selected: true,
        };
        plot.draw(painter, field(area, shape, place as u16));
    }
}
