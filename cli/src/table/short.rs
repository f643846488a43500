//! The short view, similar to gpustat's output and in the same colors: one line per GPU, with its
//! users and their memory.

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use gpumon_probe::model::{GpuSample, Health, Process, Reading, Vendor};
use unicode_width::UnicodeWidthStr;

use super::{View, build_phrase_context};
use crate::{
    describe::{
        Level, MAX_NAME_WIDTH, fit_name, format_omitted_processes, format_unlisted_processes,
    },
    gpu_lines::describe_gpu,
    options::ShownProcesses,
    terminal::{
        Layout,
        line::{ALARM, DIM, Line, PLAIN, SIMULATED, STRONG, make_printable, pad_end, pad_start},
        units::{ABSENT, format_clock, format_optional},
    },
};

/// Parts that can be added to a line of the short view.
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
    /// Utilization of the video encoder and decoder
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

/// The temperature above which gpustat shows the number in bold.
const HOT_CELSIUS: f64 = 50.0;
const BUSY_PERCENT: f64 = 30.0;

/// The width of the index and the numbers in a line without additional parts.
const NUMBERS_WIDTH: usize = "[0]  | 64'C,  96 % |  80123 / 143771 MB |".len();
const FAN_WIDTH: usize = " 30 %,".len();
const CODEC_WIDTH: usize = " (E: 100 %  D: 100 %)".len();
const POWER_WIDTH: usize = ",  693 /  700 W".len();

const MIB: u64 = 1 << 20;

pub(super) fn format_lines(view: &View<'_>, layout: Layout, parts: &[ShortPart]) -> Vec<Line> {
    let numbers = [
        (ShortPart::Fan, FAN_WIDTH),
        (ShortPart::Codec, CODEC_WIDTH),
        (ShortPart::Power, POWER_WIDTH),
    ]
    .into_iter()
    .fold(NUMBERS_WIDTH, |sum, (part, columns)| {
        sum + if parts.contains(&part) { columns } else { 0 }
    });
    let name = |index: u32| {
        let name = view
            .find_board(index)
            .and_then(|board| board.name.value())
            .map_or("unknown GPU", String::as_str);
        // gpustat always shows the full name. Here, the name is shortened if there is not enough
        // room for the numbers.
        let has_room = layout
            .width
            .is_none_or(|columns| name.width() + numbers <= columns);
        let short = || fit_name(Vendor::strip_vendor(name), MAX_NAME_WIDTH, layout);
        make_printable(&if has_room { name.to_owned() } else { short() }, layout)
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
    let mut lines = vec![format_head(view, longest, layout)];
    for gpu in &view.sample.gpus {
        let mut line = Line::new(
            INDEX,
            pad_end(&format!("[{}]", gpu.index), digits + 2) + " ",
        );
        line.push(NAME, pad_end(&name(gpu.index), longest));
        line.push(PLAIN, " | ");
        push_readings(gpu, &mut line, parts);
        for said in describe_gpu(gpu, &build_phrase_context(view, layout))
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

/// Formats the first line of the short view, such as `node17          10:42:07  580.159.04`.
fn format_head(view: &View<'_>, longest: usize, layout: Layout) -> Line {
    let inventory = view.inventory;
    let mut line = Line::new(
        STRONG,
        pad_end(&make_printable(&inventory.hostname, layout), longest + 4),
    );
    line.push(
        PLAIN,
        format!("  {}  ", format_clock(view.sample.at_ms, view.sample.at_ms)),
    );
    if inventory.platform.is_simulated {
        line.push(SIMULATED, "simulated");
    } else {
        let versions = inventory.platform.driver_versions().join("  ");
        line.push(DIM, make_printable(&versions, layout));
    }
    line
}

/// Adds a GPU's readings in gpustat's order, in which the fan precedes the utilization, such as
/// `64'C,  30 %, 96 %,  693 /  700 W | 80123 / 143771 MB`.
fn push_readings(gpu: &GpuSample, line: &mut Line, parts: &[ShortPart]) {
    let whole = |reading: &Reading<f64>, width: usize| {
        let text = format_optional(reading.value(), |value| format!("{value:.0}"));
        pad_start(&text, width)
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
        let text = format_optional(reading.value(), |bytes| (bytes / MIB).to_string());
        pad_start(&text, width)
    };
    line.push(MEMORY.bold(), mib(&gpu.memory.used_bytes, 6));
    line.push(PLAIN, " / ");
    line.push(MEMORY, mib(&gpu.memory.total_bytes, 6));
    line.push(PLAIN, " MB");
}

/// Adds the users of a GPU with their processes and memory, such as `ana:train.py/4711(61000M)
/// bob:python/815(4800M)`.
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
                line.push(DIM, format!(" {}", make_printable(user, layout)));
                if parts.contains(&ShortPart::Command) {
                    let name = process.name.value().map_or(ABSENT, String::as_str);
                    line.push(PLAIN, format!(":{}", make_printable(name, layout)));
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
                line.push(
                    DIM,
                    format!(" {}", format_omitted_processes(gpu.processes_omitted)),
                );
            }
            if let Some(note) = format_unlisted_processes(gpu) {
                line.push(DIM, format!(" {note}"));
            }
        }
        // An unhealthy GPU's problem is already shown elsewhere in the line.
        Reading::Absent(reason) if gpu.health == Health::Ok => line.push(DIM, format!(" {reason}")),
        Reading::Absent(_) => {}
    }
}
