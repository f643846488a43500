//! The view like that of gpustat: one line per GPU, with its users and their memory, in gpustat's
//! colors.

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use gpumon_probe::model::{GpuSample, Health, Process, Reading, Vendor};
use unicode_width::UnicodeWidthStr;

use super::{View, gpus::phrase_context};

use crate::terminal::{
    Layout,
    line::{Line, pad_end, pad_start, printable},
    style::{ALARM, DIM, PLAIN, SIMULATED, STRONG},
    units::{ABSENT, clock},
};
use crate::{
    describe::{LONGEST, Level, fit_name, more_processes, unlisted_processes},
    gpu_lines::describe_gpu,
    shown_processes::ShownProcesses,
};

/// Parts that can be added to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShortPart {
    /// Name of each GPU process
    Command,
    /// PID of each GPU process
    Pid,
    /// Power draw and power limit
    Power,
    /// Fan speed in percent
    Fan,
    /// Utilization of encoder and decoder
    Codec,
}

const INDEX: Style = AnsiColor::Cyan.on_default();
const NAME: Style = AnsiColor::BrightBlue.on_default();
const TEMPERATURE: Style = AnsiColor::Red.on_default();
const BUSY: Style = AnsiColor::Green.on_default();
const MEMORY: Style = AnsiColor::Yellow.on_default();
const FAN: Style = AnsiColor::Cyan.on_default();
const CODEC: Style = AnsiColor::Green.on_default().dimmed();
const POWER: Style = AnsiColor::Magenta.on_default();

/// The temperature from which on gpustat shows it in bold.
const HOT_CELSIUS: f64 = 50.0;
const BUSY_PERCENT: f64 = 30.0;

/// The width of the index and the numbers.
const NUMBERS: usize = "[0]  | 64'C,  96 % |  80123 / 143771 MB |".len();
const FAN_COLUMNS: usize = " 30 %,".len();
const CODEC_COLUMNS: usize = " (E: 100 %  D: 100 %)".len();
const POWER_COLUMNS: usize = ",  693 /  700 W".len();

const MIB: u64 = 1 << 20;

pub(super) fn lines(view: &View<'_>, layout: Layout, parts: &[ShortPart]) -> Vec<Line> {
    let numbers = [
        (ShortPart::Fan, FAN_COLUMNS),
        (ShortPart::Codec, CODEC_COLUMNS),
        (ShortPart::Power, POWER_COLUMNS),
    ]
    .into_iter()
    .fold(NUMBERS, |sum, (part, columns)| {
        sum + if parts.contains(&part) { columns } else { 0 }
    });
    let name = |index: u32| {
        let name = view
            .find_board(index)
            .and_then(|board| board.name.value())
            .map_or("unknown GPU", String::as_str);
        // gpustat shows the full name. Here, it is shortened if it leaves no room for the numbers.
        let has_room = layout
            .width
            .is_none_or(|columns| name.width() + numbers <= columns);
        let short = || fit_name(Vendor::strip_from(name), LONGEST, layout.glyphs.ellipsis());
        printable(&if has_room { name.to_owned() } else { short() }, layout)
    };
    let longest = view
        .sample
        .gpus
        .iter()
        .map(|gpu| name(gpu.index).width())
        .max()
        .unwrap_or(0);
    let digits = view
        .sample
        .gpus
        .iter()
        .map(|gpu| gpu.index.to_string().len())
        .max()
        .unwrap_or(1);
    let mut lines = vec![head(view, longest, layout)];
    for gpu in &view.sample.gpus {
        let mut line = Line::new(
            INDEX,
            pad_end(&format!("[{}]", gpu.index), digits + 2) + " ",
        );
        line.push(NAME, pad_end(&name(gpu.index), longest));
        line.push(PLAIN, " | ");
        readings(gpu, &mut line, parts);
        for said in describe_gpu(gpu, &phrase_context(view, layout))
            .iter()
            .filter(|said| said.level == Level::Act)
        {
            line.push(PLAIN, " | ");
            line.push(ALARM, &said.short);
        }
        line.push(PLAIN, " |");
        push_holders(gpu, view.listed, &mut line, layout, parts);
        lines.push(line);
    }
    lines
}

/// Returns the first line, such as `node17          10:42:07  580.159.04`.
fn head(view: &View<'_>, longest: usize, layout: Layout) -> Line {
    let inventory = view.inventory;
    let mut line = Line::new(
        STRONG,
        pad_end(&printable(&inventory.hostname, layout), longest + 4),
    );
    line.push(
        PLAIN,
        format!("  {}  ", clock(view.sample.at_ms, view.sample.at_ms)),
    );
    if inventory.platform.is_simulated {
        line.push(SIMULATED, "simulated");
    } else {
        let versions = inventory.platform.driver_versions().join("  ");
        line.push(DIM, printable(&versions, layout));
    }
    line
}

/// Adds the readings in gpustat's order, with the fan before the utilization, such as `64'C,  30 %,
/// 96 %,  693 /  700 W | 80123 / 143771 MB`.
fn readings(gpu: &GpuSample, line: &mut Line, parts: &[ShortPart]) {
    let whole = |reading: &Reading<f64>, width: usize| {
        pad_start(
            &reading
                .value()
                .map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.0}")),
            width,
        )
    };
    let bold = |style: Style, reading: &Reading<f64>, from: f64| {
        if reading.value().is_some_and(|value| *value >= from) {
            style.bold()
        } else {
            style
        }
    };
    let (heat, busy) = (&gpu.temperature.gpu_celsius, &gpu.utilization.gpu_percent);
    line.push(bold(TEMPERATURE, heat, HOT_CELSIUS), whole(heat, 2) + "'C");
    line.push(PLAIN, ", ");
    if parts.contains(&ShortPart::Fan) {
        line.push(FAN, whole(&gpu.fan_percent, 3) + " %");
        line.push(PLAIN, ", ");
    }
    line.push(bold(BUSY, busy, BUSY_PERCENT), whole(busy, 3) + " %");
    if parts.contains(&ShortPart::Codec) {
        let utilization = &gpu.utilization;
        let [encoder, decoder] = [&utilization.encoder_percent, &utilization.decoder_percent]
            .map(|percent| whole(percent, 3));
        line.push(CODEC, format!(" (E: {encoder} %  D: {decoder} %)"));
    }
    if parts.contains(&ShortPart::Power) {
        line.push(PLAIN, ", ");
        line.push(POWER.bold(), whole(&gpu.power.draw_watts, 4));
        line.push(PLAIN, " / ");
        line.push(POWER, whole(&gpu.power.limit_watts, 4));
        line.push(PLAIN, " W");
    }
    line.push(PLAIN, " | ");
    let mib = |reading: &Reading<u64>, width: usize| {
        pad_start(
            &reading
                .value()
                .map_or_else(|| ABSENT.to_owned(), |bytes| (bytes / MIB).to_string()),
            width,
        )
    };
    line.push(MEMORY.bold(), mib(&gpu.memory.used_bytes, 6));
    line.push(PLAIN, " / ");
    line.push(MEMORY, mib(&gpu.memory.total_bytes, 6));
    line.push(PLAIN, " MB");
}

/// Adds the users of the GPU, such as `ana:train.py/4711(61000M) bob:python/815(4800M)`.
fn push_holders(
    gpu: &GpuSample,
    listed: Option<&ShownProcesses>,
    line: &mut Line,
    layout: Layout,
    parts: &[ShortPart],
) {
    match &gpu.processes {
        Reading::Now(processes)
        | Reading::Earlier {
            value: processes, ..
        } => {
            let is_listed =
                |process: &&Process| listed.is_none_or(|listed| listed.is_shown(process));
            for process in processes.iter().filter(is_listed) {
                let user = process.user.value().map_or(ABSENT, String::as_str);
                line.push(DIM, format!(" {}", printable(user, layout)));
                if parts.contains(&ShortPart::Command) {
                    let name = process.name.value().map_or(ABSENT, String::as_str);
                    line.push(PLAIN, format!(":{}", printable(name, layout)));
                }
                if parts.contains(&ShortPart::Pid) {
                    line.push(PLAIN, format!("/{}", process.pid));
                }
                let held = process
                    .memory_bytes
                    .value()
                    .map_or_else(|| "?".to_owned(), |bytes| (bytes / MIB).to_string());
                line.push(PLAIN, "(");
                line.push(MEMORY, held + "M");
                line.push(PLAIN, ")");
            }
            if gpu.processes_omitted > 0 {
                line.push(DIM, format!(" {}", more_processes(gpu.processes_omitted)));
            }
            if let Some(note) = unlisted_processes(gpu) {
                line.push(DIM, format!(" {note}"));
            }
        }
        // The problem of an unhealthy GPU is shown elsewhere in the line.
        Reading::Absent(reason) if gpu.health == Health::Ok => line.push(DIM, format!(" {reason}")),
        Reading::Absent(_) => {}
    }
}
