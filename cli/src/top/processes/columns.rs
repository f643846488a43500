//! The columns of the list of processes: names, contents, and the layout for a given width.

use clap::ValueEnum;
use gpumon_probe::model::{Ancestor, ProcessKind, Reading};
use unicode_width::UnicodeWidthStr;

use super::{
    ProcessView,
    rows::{Row, Subject},
};
use crate::{
    describe,
    table::{GOOD_LABEL_WIDTH, MIN_LABEL_WIDTH},
    terminal::{
        columns::{Part, choose_parts},
        units::{format_compact_duration, format_gib, format_optional},
    },
    top::text::{
        ABSENT, align_left, align_right, describe_process, fit_process_description, format_or_dash,
        format_percent, make_printable,
    },
};

const COLUMN_GAP: usize = 2;
/// The minimum width for a process's name with its job. If less width would remain, columns with
/// additional details are omitted.
const MIN_LABEL_WIDTH_WITH_JOB: usize = 28;

// The variants have no documentation comments, because the help would show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    Gpu,
    Pid,
    User,
    Kind,
    Memory,
    // Fraction of the GPU's memory that the process uses.
    Share,
    Sm,
    // Percentage of time in which the process read or wrote device memory.
    MemoryBusy,
    Encoder,
    Decoder,
    // CPU usage in percent of one host CPU.
    Cpu,
    // Host memory in use by the process.
    HostMemory,
    Threads,
    Time,
    What,
}

impl Column {
    /// The columns that may be omitted if the list is narrow. The first columns are omitted first.
    const OMISSION_ORDER: [Self; 12] = [
        Self::Kind,
        Self::MemoryBusy,
        Self::Share,
        Self::HostMemory,
        Self::Decoder,
        Self::Encoder,
        Self::Threads,
        Self::Cpu,
        Self::Time,
        Self::User,
        Self::Sm,
        Self::Gpu,
    ];

    /// Returns `true` if the column only shows additional details.
    fn is_extra(self) -> bool {
        matches!(
            self,
            Self::Kind | Self::MemoryBusy | Self::Share | Self::Cpu | Self::HostMemory
        )
    }

    /// Returns `true` if the cell contains no information in this column, for example because it is
    /// empty or `0 %`.
    pub(in crate::top) fn is_uninformative(self, cell: &str) -> bool {
        match self {
            Self::Kind => matches!(cell, "C" | ""),
            Self::Share
            | Self::Sm
            | Self::MemoryBusy
            | Self::Encoder
            | Self::Decoder
            | Self::Cpu
            | Self::HostMemory
            | Self::Threads => {
                matches!(cell, "0 %" | "" | ABSENT)
            }
            Self::Gpu | Self::Pid | Self::User | Self::Memory | Self::Time | Self::What => false,
        }
    }

    /// Returns the columns that are shown by default.
    pub(in crate::top) fn default_columns() -> Vec<Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(|column| *column != Self::Threads).collect()
    }

    pub(in crate::top) fn heading(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Pid => "PID",
            Self::User => "USER",
            Self::Kind => "TYPE",
            Self::Memory => "MEMORY",
            Self::Share => "OF GPU",
            Self::Sm => "SM",
            Self::MemoryBusy => "MEM",
            Self::Encoder => "ENC",
            Self::Decoder => "DEC",
            Self::Cpu => "CPU",
            Self::HostMemory => "HOST MEM",
            Self::Threads => "THR",
            Self::Time => "TIME",
            Self::What => "WHAT",
        }
    }

    /// Returns `true` if the column contains text instead of numbers.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::User | Self::Kind | Self::What)
    }

    /// Fits a text into the column: text is left-aligned, and numbers are right-aligned.
    pub(in crate::top) fn align(self, text: &str, columns: usize) -> String {
        if self.is_text() {
            align_left(text, columns)
        } else {
            align_right(text, columns)
        }
    }

    /// Returns `true` if the default order is descending. Names are sorted in ascending order;
    /// numbers are sorted with the largest first.
    pub(in crate::top) fn is_descending_by_default(self) -> bool {
        !matches!(
            self,
            Self::Gpu | Self::Pid | Self::User | Self::Kind | Self::What
        )
    }

    /// Returns the width of the column. It is fixed, so that nothing moves when a value changes.
    fn width(self) -> usize {
        match self {
            Self::Gpu => 3,
            Self::Pid => 7,
            Self::User => 8,
            Self::Kind | Self::Threads => 4,
            Self::Memory | Self::HostMemory => 9,
            Self::Sm | Self::MemoryBusy | Self::Encoder | Self::Decoder => 5,
            Self::Share | Self::Cpu | Self::Time => 6,
            Self::What => 0,
        }
    }
}

impl Row<'_> {
    pub(in crate::top) fn format_cell(&self, column: Column, now_ms: u64) -> String {
        let Subject::Process(process) = &self.subject else {
            return self.format_ancestor_cell(column);
        };
        match column {
            Column::Gpu => self.device_label(),
            Column::Pid => process.pid.to_string(),
            Column::User => format_or_dash(&process.user, |user| make_printable(user)),
            Column::Kind => match process.kind {
                _ if process.mps => "MPS".to_owned(),
                ProcessKind::Compute => "C".to_owned(),
                ProcessKind::Graphics => "G".to_owned(),
                ProcessKind::ComputeAndGraphics => "C+G".to_owned(),
            },
            Column::Memory => match process.memory_bytes.value() {
                Some(bytes) => format!("{} GiB", format_gib(*bytes)),
                None => "unknown".to_owned(),
            },
            Column::Share => format_optional(self.memory_share(), |share| {
                format!("{:.0} %", 100.0 * share)
            }),
            Column::Sm => format_percent(&process.sm_percent),
            Column::MemoryBusy => format_percent(&process.memory_percent),
            Column::Encoder => format_percent(&process.encoder_percent),
            Column::Decoder => format_percent(&process.decoder_percent),
            Column::Cpu => {
                let percent = self.usage.and_then(|usage| usage.cpu_percent);
                format_optional(percent, |percent| format!("{percent:.0} %"))
            }
            Column::HostMemory => format_or_dash(&process.host_memory_bytes, |bytes| {
                format!("{} GiB", format_gib(*bytes))
            }),
            Column::Threads => format_optional(self.usage, |usage| usage.threads.to_string()),
            Column::Time => format_or_dash(&process.started_ms, |started| {
                format_compact_duration(now_ms.saturating_sub(*started))
            }),
            Column::What => {
                let what = describe_process(process, self.notebook.as_deref());
                format_optional(what, |what| make_printable(&what))
            }
        }
    }

    /// Describes the row in at most `columns` columns.
    pub(in crate::top) fn fit_label(&self, columns: usize) -> String {
        match &self.subject {
            Subject::Process(process) => {
                fit_process_description(process, self.notebook.as_deref(), columns)
                    .unwrap_or_else(|| ABSENT.to_owned())
            }
            Subject::Parents(line) => join_ancestors(line, columns),
        }
    }

    /// Returns the lowercase text that is searched in a column. For a command, this is the whole
    /// command line, including parts that are not visible.
    pub(super) fn format_searched_text(&self, column: Column) -> String {
        let shown = self.format_cell(column, 0).to_lowercase();
        match (&self.subject, column) {
            (Subject::Process(process), Column::What) => {
                let command = process.command.value().map_or("", String::as_str);
                format!("{shown} {}", command.to_lowercase())
            }
            _ => shown,
        }
    }

    /// Returns the label of the GPU or MIG device, such as `0` or `0:1`.
    fn device_label(&self) -> String {
        describe::format_device_label(self.gpu, self.part)
    }

    fn format_ancestor_cell(&self, column: Column) -> String {
        match (&self.subject, column) {
            (Subject::Parents(line), Column::Pid) => line
                .last()
                .map_or_else(String::new, |last| last.pid.to_string()),
            (Subject::Parents(line), Column::What) => join_ancestors(line, usize::MAX),
            _ => String::new(),
        }
    }

    /// Returns the fraction of its GPU's memory that the process uses.
    fn memory_share(&self) -> Option<f64> {
        let Subject::Process(process) = &self.subject else {
            return None;
        };
        let total = self.total_bytes.filter(|total| *total > 0)?;
        Some(*process.memory_bytes.value()? as f64 / total as f64)
    }
}

/// Joins the names of ancestors, such as `sshd ─ tmux ─ bash`. If the text is too long, only the
/// nearest ancestors are kept.
fn join_ancestors(parents: &[&Ancestor], columns: usize) -> String {
    let from = |place: usize| {
        let names = parents[place..]
            .iter()
            .map(|parent| make_printable(&parent.name));
        let cut = (place > 0).then(|| "…".to_owned());
        cut.into_iter().chain(names).collect::<Vec<_>>().join(" ─ ")
    };
    let nearest = parents.len().saturating_sub(1);
    (0..nearest)
        .map(from)
        .find(|line| line.width() <= columns)
        .unwrap_or_else(|| from(nearest))
}

/// Returns the number by which rows are sorted in a column. Returns `None` if the value is absent
/// or the column contains text.
pub(super) fn find_sort_value(row: &Row<'_>, column: Column) -> Option<f64> {
    let Subject::Process(process) = &row.subject else {
        return None;
    };
    let of = |reading: &Reading<f64>| reading.value().copied();
    match column {
        // A MIG device is sorted after its GPU. The divisor is large enough, because no GPU has 100
        // MIG devices.
        Column::Gpu => Some(
            f64::from(row.gpu)
                + row
                    .part
                    .map_or(0.0, |part| f64::from(part.index + 1) / 100.0),
        ),
        Column::Pid => Some(f64::from(process.pid)),
        Column::Memory => process.memory_bytes.value().map(|bytes| *bytes as f64),
        Column::Share => row.memory_share(),
        Column::Sm => of(&process.sm_percent),
        Column::MemoryBusy => of(&process.memory_percent),
        Column::Encoder => of(&process.encoder_percent),
        Column::Decoder => of(&process.decoder_percent),
        Column::Cpu => row.usage?.cpu_percent,
        Column::HostMemory => process.host_memory_bytes.value().map(|bytes| *bytes as f64),
        Column::Threads => Some(f64::from(row.usage?.threads)),
        // The earliest start means the longest time, so the start is negated.
        Column::Time => process.started_ms.value().map(|started| -(*started as f64)),
        Column::User | Column::Kind | Column::What => None,
    }
}

/// The columns that fit, each with its position and width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::top) struct ColumnLayout(pub(in crate::top) Vec<(Column, usize, usize)>);

impl ColumnLayout {
    /// Chooses as many of the selected columns as fit. The column with the name of the process
    /// takes the remaining width. If this width is too small, columns without content are omitted
    /// first.
    pub(in crate::top) fn new(view: &ProcessView, rows: &[Row<'_>], columns: usize) -> Self {
        let places = rows
            .iter()
            .map(|row| row.device_label().width())
            .max()
            .unwrap_or(0);
        let width = |column: Column| {
            if column == Column::Gpu {
                column.width().max(places)
            } else {
                column.width()
            }
        };
        let is_empty = |column: Column| {
            let is_nothing = |row: &Row<'_>| column.is_uninformative(&row.format_cell(column, 0));
            column != view.sort && !rows.is_empty() && rows.iter().all(is_nothing)
        };
        let has_what = view.columns.contains(&Column::What);
        let part = |column: &Column| {
            // Columns that are not in `OMISSION_ORDER` have rank 0, so they are never omitted.
            let place = Column::OMISSION_ORDER
                .iter()
                .position(|least| least == column);
            let rank = place.map_or(0, |place| Column::OMISSION_ORDER.len() - place);
            let (rank, rest) = match column {
                Column::What => return Part::default(),
                _ if has_what && rank > 0 && is_empty(*column) => {
                    (rank + Column::OMISSION_ORDER.len(), GOOD_LABEL_WIDTH)
                }
                _ if column.is_extra() => (rank, MIN_LABEL_WIDTH_WITH_JOB),
                _ => (rank, MIN_LABEL_WIDTH),
            };
            Part {
                width: width(*column),
                rank: rank as u8,
                rest: if has_what { rest } else { 0 },
            }
        };
        let parts: Vec<_> = view.columns.iter().map(part).collect();
        let fits = choose_parts(&parts, COLUMN_GAP, columns).into_iter();
        let fitting = view.columns.iter().zip(fits);
        let fitting: Vec<_> = fitting
            .filter(|(_, fits)| *fits)
            .map(|(column, _)| *column)
            .collect();
        let fixed: usize = fitting
            .iter()
            .filter(|column| **column != Column::What)
            .map(|column| width(*column) + COLUMN_GAP)
            .sum();
        // Wide terminals have room for long user names.
        let spare = if fitting.contains(&Column::User) && columns > fixed + 90 {
            8
        } else {
            0
        };
        let mut place = 0;
        let cells = fitting.into_iter().map(|column| {
            let width = match column {
                Column::What => columns.saturating_sub(fixed + spare),
                Column::User => column.width() + spare,
                _ => width(column),
            };
            let at = place;
            place += width + COLUMN_GAP;
            (column, at, width.min(columns.saturating_sub(at)))
        });
        Self(cells.filter(|(_, _, width)| *width > 0).collect())
    }
}
