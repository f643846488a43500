//! The view of PCIe and NVLink: traffic, errors, and the topology of the GPUs.

use gpumon_probe::{
    model::{GpuDetails, GpuSample, NvLink, NvLinkRemote, PciPath, Reading},
    units::format_byte_size,
};
use ratatui::{layout::Rect, style::Style};

use super::{StyledLine, draw_scroll_view, format_table};
use crate::{
    terminal::{columns::Column, line, units::format_optional},
    top::{
        history,
        metrics::find_metric_position,
        model::Model,
        painter::Painter,
        state::State,
        text::{ABSENT, align_left, align_right, format_or_dash, format_rate, format_reading},
    },
};

/// The width of a sparkline of a rate, in columns.
const SPARKLINE_WIDTH: usize = 16;

type Cell = line::Line<Style>;

/// The columns of the table of GPUs. If there is little room, sparklines are omitted first,
/// followed by errors, replays, the number of links, and the PCIe link.
const GPU_COLUMNS: [Column; 13] = [
    Column::new_right_aligned("GPU", 0),
    Column::new_left_aligned("PCIE", 1).with_min_width(12),
    make_rate_column("PCIE SENT"),
    SPARKLINE_COLUMN,
    make_rate_column("PCIE RECV"),
    SPARKLINE_COLUMN,
    Column::new_right_aligned("REPLAYS", 3).with_min_width(8),
    Column::new_right_aligned("LINKS", 2).with_min_width(8),
    make_rate_column("LINK SENT"),
    SPARKLINE_COLUMN,
    make_rate_column("LINK RECV"),
    SPARKLINE_COLUMN,
    Column::new_right_aligned("ERRORS", 4),
];
/// The index of the column with the number of links. If all GPUs have the same vendor, the column's
/// heading is the vendor's name for links.
const LINKS_COLUMN: usize = 7;
const SPARKLINE_COLUMN: Column = Column::new_left_aligned("", 5);

const fn make_rate_column(heading: &'static str) -> Column {
    Column::new_right_aligned(heading, 0).with_min_width("1000 GB/s".len())
}

const LINK_COLUMNS: [Column; 9] = [
    Column::new_right_aligned("LINK", 0),
    Column::new_left_aligned("STATE", 0),
    Column::new_left_aligned("VERSION", 1),
    Column::new_right_aligned("SPEED", 0),
    Column::new_left_aligned("TO", 0),
    Column::new_left_aligned("AT", 2),
    make_rate_column("SENT"),
    make_rate_column("RECEIVED"),
    Column::new_right_aligned("ERRORS", 0),
];

pub(super) fn draw_links(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) -> u16 {
    let gpus = model.gpus().iter();
    let rows = gpus
        .filter(|gpu| state.gpu.is_none_or(|index| gpu.index == index))
        .map(|gpu| summarize_gpu_links(painter, gpu, model, state));
    let rows: Vec<_> = rows.collect();
    let mut vendors: Vec<_> = model
        .gpus()
        .iter()
        .map(|gpu| model.find_vendor(gpu.index))
        .collect();
    vendors.dedup();
    let mut columns = GPU_COLUMNS;
    if let [vendor] = vendors[..] {
        columns[LINKS_COLUMN] = Column::new_right_aligned(vendor.link_name(), 2).with_min_width(8);
    }
    let (heading, mut lines) = format_table(painter, area, &columns, &rows);
    match model.selected_or_only_gpu(state.gpu) {
        Some(gpu) => {
            let name = model.find_vendor(gpu).link_name();
            lines.extend(format_links(painter, area, name, model.find_details(gpu)));
        }
        None => lines.extend(format_topology(painter, model)),
    }
    draw_scroll_view(painter, area, Some(&heading), &lines, state.view_scroll)
}

fn summarize_gpu_links(
    painter: &Painter<'_>,
    gpu: &GpuSample,
    model: &Model,
    state: &State,
) -> Vec<Cell> {
    let (plain, traffic, alarm) = (
        painter.theme.plain,
        painter.theme.traffic,
        painter.theme.alarm,
    );
    let board = model.find_board(gpu.index).map(|gpu| &gpu.board);
    let number = |reading: &Reading<u32>| format_or_dash(reading, ToString::to_string);
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
    let details = model.find_details(gpu.index);
    let nvlinks = details.and_then(|details| details.nvlinks.value());
    let up = format_optional(nvlinks, |links| {
        match links
            .iter()
            .filter(|link| link.active.value() == Some(&true))
            .count()
        {
            _ if links.is_empty() => "none".to_owned(),
            up => format!("{up} of {}", links.len()),
        }
    });
    let all_up =
        nvlinks.is_none_or(|links| links.iter().all(|link| link.active.value() != Some(&false)));
    let errors = |links: &Vec<NvLink>| {
        links
            .iter()
            .filter_map(|link| link.errors_total.value())
            .fold(0, |sum: u64, errors| sum.saturating_add(*errors))
    };
    let errors = nvlinks.map(errors);
    let replays = format_optional(details, |details| {
        format_or_dash(&details.pcie_replays_total, ToString::to_string)
    });
    let errors = format_optional(errors, |errors| errors.to_string());
    let rate = |reading: &Reading<f64>| {
        Cell::new(
            traffic,
            format_or_dash(reading, |speed| format_rate(*speed)),
        )
    };
    let past = |metric: &str| {
        let metric =
            find_metric_position(metric).map(|metric| history::ChartLine::Gpu(gpu.index, metric));
        let values =
            metric.map(|line| model.read_line_values(line, state.chart_span_ms(), SPARKLINE_WIDTH));
        let values = values.unwrap_or_default();
        let largest = values
            .iter()
            .flatten()
            .fold(1.0_f64, |largest, value| largest.max(*value));
        let shares = values.into_iter().map(|value| Some(value? / largest));
        Cell::new(traffic, painter.glyphs.draw_sparkline(shares))
    };
    vec![
        Cell::new(plain, gpu.index.to_string()),
        Cell::new(plain, pcie),
        rate(&gpu.pcie.tx_bytes_per_second),
        past("pcie-tx"),
        rate(&gpu.pcie.rx_bytes_per_second),
        past("pcie-rx"),
        Cell::new(plain, replays),
        Cell::new(if all_up { plain } else { alarm }, up),
        rate(&gpu.nvlink.tx_bytes_per_second),
        past("nvlink-tx"),
        rate(&gpu.nvlink.rx_bytes_per_second),
        past("nvlink-rx"),
        Cell::new(plain, errors),
    ]
}

fn format_links(
    painter: &Painter<'_>,
    area: Rect,
    name: &str,
    details: Option<&GpuDetails>,
) -> Vec<StyledLine> {
    let dim = painter.theme.dim;
    let Some(details) = details else {
        return vec![vec![(
            "The links of this GPU have not been read yet.".to_owned(),
            dim,
        )]];
    };
    let links = match &details.nvlinks {
        Reading::Now(links) | Reading::Earlier { value: links, .. } => links,
        Reading::Absent(reason) => return vec![vec![(format!("{name}: {reason}"), dim)]],
    };
    if links.is_empty() {
        return vec![vec![(format!("This GPU has no {name}."), dim)]];
    }
    let row = |link: &NvLink| {
        let style = if link.active.value() == Some(&false) {
            painter.theme.alarm
        } else {
            painter.theme.plain
        };
        format_link(link)
            .map(|cell| Cell::new(style, cell))
            .to_vec()
    };
    let rows: Vec<_> = links.iter().map(row).collect();
    let (heading, table) = format_table(painter, area, &LINK_COLUMNS, &rows);
    [vec![StyledLine::new(), heading], table].concat()
}

fn format_link(link: &NvLink) -> [String; 9] {
    [
        link.link.to_string(),
        format_reading(&link.active, |up| {
            if *up { "up" } else { "down" }.to_owned()
        }),
        format_or_dash(&link.version, Clone::clone),
        format_or_dash(&link.bytes_per_second, |speed| format_rate(*speed)),
        format_or_dash(&link.remote, |remote| name_remote(*remote).to_owned()),
        format_or_dash(&link.remote_pci_bus_id, Clone::clone),
        format_or_dash(&link.tx_bytes_total, |total| {
            format_byte_size(*total as f64)
        }),
        format_or_dash(&link.rx_bytes_total, |total| {
            format_byte_size(*total as f64)
        }),
        format_or_dash(&link.errors_total, ToString::to_string),
    ]
}

fn format_topology(painter: &Painter<'_>, model: &Model) -> Vec<StyledLine> {
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
    let mut lines = vec![StyledLine::new(), vec![(align_left("", 5) + &heads, dim)]];
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
                    _ => format_or_dash(&link.path, |path| abbreviate_path(*path).to_owned()),
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

/// Returns the abbreviation of a path in the output of `nvidia-smi topo -m`.
fn abbreviate_path(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal => "INT",
        PciPath::Single => "PIX",
        PciPath::Multiple => "PXB",
        PciPath::HostBridge => "PHB",
        PciPath::Node => "NODE",
        PciPath::System => "SYS",
    }
}

fn name_remote(remote: NvLinkRemote) -> &'static str {
    match remote {
        NvLinkRemote::Gpu => "GPU",
        NvLinkRemote::Npu => "NPU",
        NvLinkRemote::Switch => "NVSwitch",
        NvLinkRemote::Unknown => "unknown",
    }
}
