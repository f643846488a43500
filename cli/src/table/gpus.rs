//! One line per GPU: utilisation, memory, temperature, power, and what is the matter, in words.

use gpumon_probe::model::{Absence, GpuSample, Health, Inventory, Reading, Sample, ThrottleReason};
use unicode_width::UnicodeWidthStr;

use super::{
    Layout,
    bar::bar,
    short_name,
    style::{ALARM, DIM, MEMORY, NOTICE, POWER, STRONG, TEMPERATURE, UTILIZATION, paint},
    units::{ABSENT, duration, gib, three_digits, whole},
};

const GAP: usize = 2;
const LONGEST_BAR: usize = 32;
const SHORTEST_BAR: usize = 6;
const SHORTEST_NAME: usize = 8;
/// Memory this full is about to run out.
const NEARLY_FULL: f64 = 0.95;

/// One GPU's cells as text, before they are laid out.
struct Row {
    index: String,
    name: String,
    utilization: String,
    memory: String,
    memory_share: Option<f64>,
    temperature: String,
    power: String,
    words: Vec<Words>,
}

/// What is the matter, and how urgent it is.
struct Words {
    text: String,
    alarm: bool,
}

/// The widths that all rows share.
struct Widths {
    index: usize,
    name: usize,
    utilization: usize,
    memory: usize,
    bar: usize,
    temperature: usize,
    power: usize,
    /// Whether the words fit behind the rest; otherwise they get a line of their own.
    words_fit: bool,
}

pub(super) fn lines(inventory: &Inventory, sample: &Sample, layout: Layout) -> Vec<String> {
    let rows: Vec<Row> = sample
        .gpus
        .iter()
        .map(|gpu| {
            let known = inventory.gpus.iter().find(|known| known.index == gpu.index);
            row(
                gpu,
                known.map_or_else(|| "unknown GPU".to_owned(), |known| short_name(&known.name)),
                sample.at_ms,
                layout,
            )
        })
        .collect();
    let widths = widths(&rows, layout);
    rows.iter().flat_map(|row| draw(row, &widths, layout)).collect()
}

fn row(gpu: &GpuSample, name: String, now_ms: u64, layout: Layout) -> Row {
    let used = gpu.memory.used_bytes.value();
    let total = gpu.memory.total_bytes.value();
    Row {
        index: gpu.index.to_string(),
        name,
        utilization: whole(&gpu.utilization.gpu_percent, "%"),
        memory: match (used, total) {
            (Some(used), Some(total)) => format!("{}/{} GiB", gib(*used), gib(*total)),
            (Some(used), None) => format!("{} GiB", gib(*used)),
            (None, _) => ABSENT.to_owned(),
        },
        memory_share: used
            .zip(total)
            .filter(|(_, total)| **total > 0)
            .map(|(used, total)| *used as f64 / *total as f64),
        temperature: whole(&gpu.temperature.gpu_celsius, if layout.unicode { "°C" } else { "C" }),
        power: match (gpu.power.draw_watts.value(), gpu.power.limit_watts.value()) {
            (Some(draw), Some(limit)) => format!("{draw:.0}/{limit:.0} W"),
            (Some(draw), None) => format!("{} W", three_digits(*draw)),
            (None, _) => ABSENT.to_owned(),
        },
        words: words(gpu, now_ms),
    }
}

fn words(gpu: &GpuSample, now_ms: u64) -> Vec<Words> {
    let notice = |text: &str| Words { text: text.to_owned(), alarm: false };
    let alarm = |text: String| Words { text, alarm: true };
    let since = |since_ms: u64| duration(now_ms.saturating_sub(since_ms));
    let mut words = Vec::new();
    match &gpu.health {
        Health::Ok if gpu.power.draw_watts == Reading::Absent(Absence::NoAnswer) => {
            words.push(notice("the driver has not answered yet"));
        }
        Health::Ok => {}
        Health::Asleep { .. } => words.push(notice("asleep to save power")),
        Health::Hung { since_ms } => words.push(alarm(format!("driver has not answered for {}", since(*since_ms)))),
        Health::Lost { .. } => words.push(alarm("GPU lost: reset it or reboot the machine".to_owned())),
        Health::Failed { reason, .. } => words.push(alarm(format!("cannot be opened: {reason}"))),
    }
    if let (Some(used), Some(total)) = (gpu.memory.used_bytes.value(), gpu.memory.total_bytes.value())
        && *used as f64 >= NEARLY_FULL * *total as f64
        && *total > 0
    {
        words.push(alarm("memory nearly full".to_owned()));
    }
    for reason in gpu.throttle_reasons.value().into_iter().flatten() {
        match reason {
            // A hardware slowdown accompanies one of the reasons that tell more.
            ThrottleReason::GpuIdle | ThrottleReason::HwSlowdown => {}
            ThrottleReason::SwPowerCap => words.push(notice("power capped")),
            ThrottleReason::SwThermalSlowdown => words.push(notice("slowed by heat")),
            ThrottleReason::HwThermalSlowdown => words.push(alarm("slowed hard by heat".to_owned())),
            ThrottleReason::HwPowerBrakeSlowdown => words.push(alarm("power brake: check the supply".to_owned())),
            ThrottleReason::SyncBoost => words.push(notice("held back by its boost group")),
            ThrottleReason::ApplicationsClocksSetting => words.push(notice("clocks set by the user")),
            ThrottleReason::DisplayClockSetting => words.push(notice("clocks held for a display")),
        }
    }
    words
}

fn widths(rows: &[Row], layout: Layout) -> Widths {
    let widest = |cell: fn(&Row) -> &str| rows.iter().map(|row| cell(row).width()).max().unwrap_or(0);
    let mut widths = Widths {
        index: widest(|row| &row.index).max(2),
        name: widest(|row| &row.name),
        utilization: widest(|row| &row.utilization).max("100 %".len()),
        memory: widest(|row| &row.memory),
        bar: 0,
        temperature: widest(|row| &row.temperature),
        power: widest(|row| &row.power),
        words_fit: true,
    };
    // Where it is narrow, the name is cut first, and then what tells least is left out.
    let columns = layout.columns();
    if layout.width.is_some() {
        let excess = widths.taken().saturating_sub(columns);
        widths.name = widths.name.saturating_sub(excess).max(SHORTEST_NAME.min(widths.name));
        let leave_out: [fn(&mut Widths); 3] =
            [|cells| cells.temperature = 0, |cells| cells.power = 0, |cells| cells.name = 0];
        for leave_out in leave_out {
            if widths.taken() > columns {
                leave_out(&mut widths);
            }
        }
    }
    let words = rows.iter().map(words_width).max().filter(|words| *words > 0).map_or(0, |words| words + GAP);
    let room = columns.saturating_sub(widths.taken());
    let beside_the_words = room.saturating_sub(words);
    let for_bar = if beside_the_words >= SHORTEST_BAR + GAP { beside_the_words } else { room };
    if for_bar >= SHORTEST_BAR + GAP {
        widths.bar = (for_bar - GAP).min(LONGEST_BAR);
    }
    widths.words_fit = layout.width.is_none() || columns.saturating_sub(widths.taken()) >= words;
    widths
}

impl Widths {
    /// The columns of a line without the words; a cell of no width is left out with its gap.
    fn taken(&self) -> usize {
        let cells = [self.name, self.utilization, self.memory, self.bar, self.temperature, self.power];
        self.index + cells.into_iter().filter(|cell| *cell > 0).map(|cell| cell + GAP).sum::<usize>() + 1 - GAP
    }
}

fn words_width(row: &Row) -> usize {
    row.words.iter().map(|words| words.text.width()).sum::<usize>() + 2 * row.words.len().saturating_sub(1)
}

fn draw(row: &Row, widths: &Widths, layout: Layout) -> Vec<String> {
    let gap = " ".repeat(GAP);
    let memory_style = if row.memory_share.is_some_and(|share| share >= NEARLY_FULL) { ALARM } else { MEMORY };
    let nothing = || (String::new(), " ".repeat(widths.bar));
    let (full, empty) = row.memory_share.map_or_else(nothing, |share| bar(share, widths.bar, layout.unicode));
    let cells = [
        (widths.name, paint(STRONG, &left(&cut(&row.name, widths.name, layout), widths.name))),
        (widths.utilization, paint(UTILIZATION, &right(&row.utilization, widths.utilization))),
        (widths.memory, right(&row.memory, widths.memory)),
        (widths.bar, paint(memory_style, &full) + &paint(DIM, &empty)),
        (widths.temperature, paint(TEMPERATURE, &right(&row.temperature, widths.temperature))),
        (widths.power, paint(POWER, &right(&row.power, widths.power))),
    ];
    let shown: Vec<_> = cells.into_iter().filter(|(width, _)| *width > 0).map(|(_, cell)| cell).collect();
    let line = format!("{} {}", right(&row.index, widths.index), shown.join(&gap));
    if row.words.is_empty() {
        return vec![line];
    }
    let indent = " ".repeat(widths.index + 1);
    let room = if widths.words_fit { usize::MAX } else { layout.columns().saturating_sub(indent.len()) };
    let mut left_over = room;
    let mut words = Vec::new();
    for said in &row.words {
        let text = cut(&said.text, left_over, layout);
        left_over = left_over.saturating_sub(text.width() + 2);
        words.push(paint(if said.alarm { ALARM } else { NOTICE }, &text));
    }
    let words = words.join(", ");
    if widths.words_fit { vec![line + &gap + &words] } else { vec![line, indent + &words] }
}

/// Cuts to so many columns, and says that something is missing.
pub(super) fn cut(text: &str, columns: usize, layout: Layout) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let mut kept = String::new();
    for character in text.chars() {
        if kept.width() + unicode_width::UnicodeWidthChar::width(character).unwrap_or(0) + 1 > columns {
            break;
        }
        kept.push(character);
    }
    kept + if layout.unicode { "…" } else { "~" }
}

pub(super) fn right(text: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(text.width())) + text
}

pub(super) fn left(text: &str, columns: usize) -> String {
    text.to_owned() + &" ".repeat(columns.saturating_sub(text.width()))
}

/// Why there is no list, in words.
pub(super) fn reason<T>(reading: &Reading<T>) -> Option<String> {
    reading.absence().map(ToString::to_string)
}
