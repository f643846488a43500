//! The host in one line: CPU, RAM, load, disks, and network.

use gpumon_probe::model::{HostSample, Reading};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};

use crate::{
    describe::{self, Load},
    top::{
        history::{Line, MINUTE_MS},
        metrics::HOST_METRICS,
        model::Model,
        painter::Painter,
        state::State,
        text::{ABSENT, align_right, percent, rate, shown},
    },
};

const GAP: u16 = 2;
/// The width of a rate such as `1.24 GB/s`.
const RATE: usize = 9;
/// The width of the line with traffic by direction, without the RAM's value.
const WITH_DIRECTIONS: usize =
    "CPU 100 %  RAM   load 99.99  disk R 1.24 GB/s W 1.24 GB/s  net RX 1.24 GB/s TX 1.24 GB/s"
        .len();
/// The minimum width of a sparkline or a bar.
const SHORTEST: u16 = 5;

/// Draws the line. Parts that do not fit are omitted whole, from the right.
pub(in crate::top) fn host_line(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) {
    let Some(host) = model.sample.as_ref().map(|sample| &sample.host) else {
        return;
    };
    let theme = painter.theme;
    let share = describe::share(
        host.memory.used_bytes.value(),
        host.memory.total_bytes.value(),
    );
    let busy = host.cpu.busy_percent.value().map(|percent| percent / 100.0);
    let cpu_style = theme.of_load(Load::of(busy, state.thresholds.utilization));
    let ram_style = theme.of_load(Load::of(share, state.thresholds.memory));
    let (ram, ram_columns) = ram(host);
    let free = usize::from(area.width).checked_sub(WITH_DIRECTIONS + ram_columns);
    let drawn = free.map_or(0, |free| (free as u16 / 2).saturating_sub(1).min(40));
    let drawn = if drawn < SHORTEST { 0 } else { drawn };
    let mut at = Parts {
        painter,
        area,
        x: area.x,
    };
    if at.put(
        "CPU",
        &percent(&host.cpu.busy_percent),
        "100 %".len(),
        cpu_style,
        drawn,
    ) && let Some(x) = at.drawing(drawn)
        && let Some(metric) = HOST_METRICS
            .iter()
            .position(|metric| metric.id == "host.cpu.busy_percent")
    {
        let past = model.line(Line::Host(metric), MINUTE_MS, drawn.into());
        let past = past
            .into_iter()
            .map(|value| value.map(|percent| percent / 100.0));
        at.painter.spark(x, area.y, past, theme.utilization);
    }
    if at.put("RAM", &ram, ram_columns, ram_style, drawn)
        && let Some(x) = at.drawing(drawn)
    {
        at.painter.bar(
            x,
            area.y,
            drawn,
            share,
            ram_style.remove_modifier(Modifier::UNDERLINED),
        );
    }
    at.put(
        "load",
        &shown(&host.cpu.load_1m, |load| format!("{load:.2}")),
        "99.99".len(),
        theme.plain,
        0,
    );
    let (disk, network) = (&host.disk, &host.network);
    for (label, ways) in [
        (
            "disk",
            [
                ("R", &disk.read_bytes_per_second),
                ("W", &disk.written_bytes_per_second),
            ],
        ),
        (
            "net",
            [
                ("RX", &network.received_bytes_per_second),
                ("TX", &network.sent_bytes_per_second),
            ],
        ),
    ] {
        if free.is_some() {
            let ways = ways.map(|(way, reading)| {
                format!(
                    "{way} {}",
                    align_right(&shown(reading, |bytes| rate(*bytes)), RATE)
                )
            });
            at.put(label, &ways.join(" "), 0, theme.traffic, 0);
        } else {
            at.put(label, &both(ways[0].1, ways[1].1), RATE, theme.traffic, 0);
        }
    }
}

/// Returns the RAM usage, such as `41.2/128 GiB`, and its maximum width.
fn ram(host: &HostSample) -> (String, usize) {
    match (
        host.memory.used_bytes.value(),
        host.memory.total_bytes.value(),
    ) {
        (Some(used), Some(total)) => {
            let of_all = |bytes: u64| describe::used_of(bytes, Some(*total));
            (of_all(*used), of_all(*total).len())
        }
        _ => (ABSENT.to_owned(), ABSENT.len()),
    }
}

/// Formats the sum of both directions.
fn both(one: &Reading<f64>, other: &Reading<f64>) -> String {
    one.value()
        .zip(other.value())
        .map_or_else(|| ABSENT.to_owned(), |(one, other)| rate(one + other))
}

struct Parts<'a, 'b> {
    painter: &'a mut Painter<'b>,
    area: Rect,
    x: u16,
}

impl Parts<'_, '_> {
    /// Writes a label and a value of this many columns if they fit along with a drawing of `drawn`
    /// columns after them.
    fn put(&mut self, label: &str, text: &str, columns: usize, style: Style, drawn: u16) -> bool {
        let before = if self.x > self.area.x { GAP } else { 0 };
        let columns = columns.max(text.len());
        let taken = before + (label.len() + 1 + columns) as u16;
        if self.x + taken + drawn > self.area.right() {
            self.x = self.area.right();
            return false;
        }
        self.painter.text(
            self.x + before,
            self.area.y,
            taken,
            label,
            self.painter.theme.dim,
        );
        self.x += taken;
        let style = if text == ABSENT {
            self.painter.theme.dim
        } else {
            style
        };
        self.painter.text(
            self.x - text.len() as u16,
            self.area.y,
            text.len() as u16,
            text,
            style,
        );
        true
    }

    /// Returns the position of a drawing of this many columns, or `None` if it has none.
    fn drawing(&mut self, columns: u16) -> Option<u16> {
        let x = self.x + 1;
        self.x += if columns > 0 { columns + 1 } else { 0 };
        (columns > 0).then_some(x)
    }
}
