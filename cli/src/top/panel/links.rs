//! PCIe and NVLink: what crosses them, how well they are, and which GPUs they join.

use gpumon_probe::{
    model::{GpuDetails, GpuSample, NvLink, NvLinkRemote, PciPath, Reading},
    units::byte_size,
};
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::scroll_view::{Line, scroll_view};
use crate::top::{
    history,
    metrics::position,
    model::Model,
    painter::Painter,
    state::State,
    text::{ABSENT, align_left, align_right, format_reading, rate, shown},
};

const RATE: usize = 10;
const PAST: usize = 16;

pub(super) fn links(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) -> u16 {
    let dim = painter.theme.dim;
    let past = usize::from(area.width) >= 76 + 4 * PAST;
    let with_past = |heading: &str| {
        align_left(
            &align_right(heading, RATE),
            RATE + if past { PAST + 3 } else { 2 },
        )
    };
    let shown = || {
        let gpus = model.gpus().iter();
        gpus.filter(|gpu| state.gpu.is_none_or(|index| gpu.index == index))
    };
    let mut vendors: Vec<_> = shown().map(|gpu| model.find_vendor(gpu.index)).collect();
    vendors.dedup();
    let link = match vendors[..] {
        [vendor] => vendor.link_name().to_uppercase(),
        _ => "LINKS".to_owned(),
    };
    let heading: Line = vec![
        (align_left("GPU", 5), dim),
        (align_left("PCIE", 16), dim),
        (with_past("PCIE SENT"), dim),
        (with_past("PCIE RECV"), dim),
        (align_right("REPLAYS", 8) + "  ", dim),
        (align_left(&link, 9), dim),
        (with_past("LINK SENT"), dim),
        (with_past("LINK RECV"), dim),
        (align_right("ERRORS", 8), dim),
    ];
    let makes_way = make_way(&heading, area.width.into());
    let heading = without(heading, &makes_way);
    let mut lines: Vec<Line> = shown()
        .map(|gpu| without(summary(painter, gpu, model, state, past), &makes_way))
        .collect();
    match state.gpu.or(if let [only] = model.gpus() {
        Some(only.index)
    } else {
        None
    }) {
        Some(gpu) => {
            let name = model.find_vendor(gpu).link_name();
            lines.extend(list_links(painter, name, model.details(gpu)));
        }
        None => lines.extend(topology(painter, model)),
    }
    scroll_view(painter, area, Some(&heading), &lines, state.view_scroll)
}

/// What makes way where it is narrow, by the places in a line: errors, replays, the count of NVLinks, and the PCIe link.
fn make_way(heading: &Line, columns: usize) -> Vec<usize> {
    let mut taken: usize = heading.iter().map(|(text, _)| text.width()).sum();
    let mut makes_way = Vec::new();
    for place in [8, 4, 5, 1] {
        if taken > columns {
            taken -= heading[place].0.width();
            makes_way.push(place);
        }
    }
    makes_way
}

fn without(line: Line, places: &[usize]) -> Line {
    let parts = line
        .into_iter()
        .enumerate()
        .filter(|(place, _)| !places.contains(place));
    parts.map(|(_, part)| part).collect()
}

fn summary(
    painter: &Painter<'_>,
    gpu: &GpuSample,
    model: &Model,
    state: &State,
    past: bool,
) -> Line {
    let (plain, traffic, alarm) = (
        painter.theme.plain,
        painter.theme.traffic,
        painter.theme.alarm,
    );
    let board = model.board(gpu.index).map(|gpu| &gpu.board);
    let number = |reading: &Reading<u32>| shown(reading, ToString::to_string);
    let most = board.and_then(|board| {
        Some((
            *board.pcie_max_generation.value()?,
            *board.pcie_max_width.value()?,
        ))
    });
    let most = most.map_or_else(String::new, |(generation, width)| {
        format!(" of {generation} x{width}")
    });
    let pcie = format!(
        "{} x{}{most}",
        number(&gpu.pcie.generation),
        number(&gpu.pcie.width)
    );
    let details = model.details(gpu.index);
    let nvlinks = details.and_then(|details| details.nvlinks.value());
    let up = nvlinks.map_or_else(
        || ABSENT.to_owned(),
        |links| match links
            .iter()
            .filter(|link| link.active.value() == Some(&true))
            .count()
        {
            _ if links.is_empty() => "none".to_owned(),
            up => format!("{up} of {}", links.len()),
        },
    );
    let all_up =
        nvlinks.is_none_or(|links| links.iter().all(|link| link.active.value() != Some(&false)));
    let errors = |links: &Vec<NvLink>| {
        links
            .iter()
            .filter_map(|link| link.errors_total.value())
            .fold(0, |sum: u64, errors| sum.saturating_add(*errors))
    };
    let errors = nvlinks.map(errors);
    let replays = details.map_or_else(
        || ABSENT.to_owned(),
        |details| shown(&details.pcie_replays_total, ToString::to_string),
    );
    let of_rate = |reading: &Reading<f64>, metric: &str| {
        let text = align_right(&shown(reading, |speed| rate(*speed)), RATE) + "  ";
        if !past {
            return text;
        }
        let values = position(metric)
            .map(|metric| model.line(history::Line::Gpu(gpu.index, metric), state.span_ms(), PAST));
        let values = values.unwrap_or_default();
        let largest = values
            .iter()
            .flatten()
            .fold(1.0_f64, |largest, value| largest.max(*value));
        let shares = values.into_iter().map(|value| Some(value? / largest));
        text + &painter.glyphs.draw_spark(shares) + " "
    };
    vec![
        (
            align_left(&align_right(&gpu.index.to_string(), 3), 5),
            plain,
        ),
        (align_left(&pcie, 16), plain),
        (of_rate(&gpu.pcie.tx_bytes_per_second, "pcie-tx"), traffic),
        (of_rate(&gpu.pcie.rx_bytes_per_second, "pcie-rx"), traffic),
        (align_right(&replays, 8) + "  ", plain),
        (align_left(&up, 9), if all_up { plain } else { alarm }),
        (
            of_rate(&gpu.nvlink.tx_bytes_per_second, "nvlink-tx"),
            traffic,
        ),
        (
            of_rate(&gpu.nvlink.rx_bytes_per_second, "nvlink-rx"),
            traffic,
        ),
        (
            align_right(
                &errors.map_or_else(|| ABSENT.to_owned(), |errors| errors.to_string()),
                8,
            ),
            plain,
        ),
    ]
}

fn list_links(painter: &Painter<'_>, name: &str, details: Option<&GpuDetails>) -> Vec<Line> {
    let dim = painter.theme.dim;
    let Some(details) = details else {
        return vec![vec![("Its links have not been read yet.".to_owned(), dim)]];
    };
    let links = match (details.nvlinks.value(), details.nvlinks.absence()) {
        (Some(links), _) if links.is_empty() => {
            return vec![vec![(format!("It has no {name}."), dim)]];
        }
        (Some(links), _) => links,
        (None, reason) => {
            let reason = reason.map_or_else(String::new, ToString::to_string);
            return vec![vec![(format!("{name}: {reason}"), dim)]];
        }
    };
    let heading = [
        "LINK", "STATE", "VERSION", "SPEED", "TO", "AT", "SENT", "RECEIVED", "ERRORS",
    ];
    let widths = [5, 8, 9, 12, 10, 18, 12, 12, 8];
    let cells = |cells: [String; 9]| {
        cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| align_left(cell, width))
            .collect::<String>()
    };
    let mut rows = vec![Line::new(), vec![(cells(heading.map(str::to_owned)), dim)]];
    rows.extend(links.iter().map(|link| {
        let style = if link.active.value() == Some(&false) {
            painter.theme.alarm
        } else {
            painter.theme.plain
        };
        vec![(cells(of_link(link)), style)]
    }));
    rows
}

fn of_link(link: &NvLink) -> [String; 9] {
    [
        align_right(&link.link.to_string(), 4),
        format_reading(&link.active, |up| {
            if *up { "up" } else { "down" }.to_owned()
        }),
        shown(&link.version, Clone::clone),
        shown(&link.bytes_per_second, |speed| rate(*speed)),
        shown(&link.remote, |remote| of_remote(*remote).to_owned()),
        shown(&link.remote_pci_bus_id, Clone::clone),
        shown(&link.tx_bytes_total, |total| byte_size(*total as f64)),
        shown(&link.rx_bytes_total, |total| byte_size(*total as f64)),
        shown(&link.errors_total, ToString::to_string),
    ]
}

fn topology(painter: &Painter<'_>, model: &Model) -> Vec<Line> {
    let Some(inventory) = model
        .inventory
        .as_ref()
        .filter(|known| !known.topology.is_empty())
    else {
        return Vec::new();
    };
    let dim = painter.theme.dim;
    let indexes: Vec<u32> = inventory.gpus.iter().map(|gpu| gpu.index).collect();
    let heads: String = indexes
        .iter()
        .map(|index| align_right(&format!("GPU{index}"), 6))
        .collect();
    let mut lines = vec![Line::new(), vec![(align_left("", 5) + &heads, dim)]];
    for row in &indexes {
        let cells = indexes.iter().map(|column| {
            let pair = (*row.min(column), *row.max(column));
            let link = inventory
                .topology
                .iter()
                .find(|link| (link.a, link.b) == pair);
            let text = match link {
                None if row == column => "·".to_owned(),
                None => ABSENT.to_owned(),
                Some(link) => match link.nvlinks.value() {
                    Some(count) if *count > 0 => format!("NV{count}"),
                    _ => shown(&link.path, |path| of_path(*path).to_owned()),
                },
            };
            align_right(&text, 6)
        });
        lines.push(vec![
            (align_left(&align_right(&row.to_string(), 3), 5), dim),
            (cells.collect(), painter.theme.plain),
        ]);
    }
    lines
}

/// What `nvidia-smi topo -m` writes.
fn of_path(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal => "INT",
        PciPath::Single => "PIX",
        PciPath::Multiple => "PXB",
        PciPath::HostBridge => "PHB",
        PciPath::Node => "NODE",
        PciPath::System => "SYS",
    }
}

fn of_remote(remote: NvLinkRemote) -> &'static str {
    match remote {
        NvLinkRemote::Gpu => "GPU",
        NvLinkRemote::Npu => "NPU",
        NvLinkRemote::Switch => "NVSwitch",
        NvLinkRemote::Unknown => "unknown",
    }
}
