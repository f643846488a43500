//! CSV and NDJSON output, with one row per GPU or process. The names and meanings of the columns
//! are stable. `gpumon export` has the same columns, and optionally rows for MIG devices and the
//! host. Readings of MIG devices and the host have their own columns, so that the sum of a column
//! does not count memory twice.
//!
//! Numbers have no units, because the column names contain them. The units are the same as in the
//! JSON output. A missing value is an empty field.

mod columns;

use gpumon_history::span::DeviceKind;
use gpumon_probe::{
    model::{Inventory, Sample},
    untrusted::to_printable,
};
use serde_json::Value;

use self::columns::{
    ALL_DEVICE_COLUMNS, ALL_PROCESS_COLUMNS, Column, make_device_rows, make_process_rows,
};
pub(crate) use self::columns::{DEVICE_KEYS, format_rounded, format_timestamp};
use crate::suggest::suggest_word;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    Gpus,
    Processes,
    /// One row per GPU. Each MIG device also has a row if columns of MIG devices are selected, and
    /// the host has a row if columns of the host are selected.
    Devices,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Comma-separated values with a header
    Csv,
    /// One JSON object per line
    Ndjson,
}

/// The columns selected for a table.
pub(crate) struct SelectedColumns {
    rows: RowKind,
    chosen: Vec<&'static Column>,
    /// The kinds of devices that have rows: each kind with at least one selected column. If there
    /// is no such kind, only GPUs have rows.
    kinds: Vec<DeviceKind>,
}

/// The value of a column option that lists the available columns.
pub(crate) const HELP: &str = "help";
const ALL_COLUMNS: &str = "all";

impl SelectedColumns {
    /// Selects the columns in `names`, a comma-separated list of names or prefixes such as
    /// `memory`. Without `names`, selects the default columns.
    pub(crate) fn new(rows: RowKind, names: Option<&str>) -> Result<Self, String> {
        let mut chosen = Vec::new();
        match names {
            None => chosen.extend(rows.columns().filter(|column| column.usual)),
            Some(names) => {
                for name in names.split(',').map(str::trim) {
                    let before = chosen.len();
                    chosen.extend(rows.find_columns(name));
                    if chosen.len() == before {
                        return Err(rows.describe_unknown_column(name));
                    }
                }
            }
        }
        Ok(Self {
            rows,
            chosen,
            kinds: vec![DeviceKind::Gpu],
        })
    }

    /// Selects the columns `keys`, followed by the columns in `names`. `names` may contain field
    /// IDs such as `power.draw_watts`. Without `names`, selects the default columns.
    pub(crate) fn with_keys(
        rows: RowKind,
        keys: &[&str],
        names: Option<&str>,
    ) -> Result<Self, String> {
        let wanted = Self::new(rows, names.map(|names| names.replace('.', "_")).as_deref())?;
        let is_key =
            |column: &Column| keys.contains(&&*column.name) || DEVICE_KEYS.contains(&&*column.name);
        let has = |kind: &DeviceKind| {
            let mut readings = wanted.chosen.iter().filter(|column| !is_key(column));
            readings.any(|column| column.only_if_named.unwrap_or(DeviceKind::Gpu) == *kind)
        };
        let mut kinds: Vec<_> = DeviceKind::ALL.into_iter().filter(has).collect();
        let has_others = kinds.iter().any(|kind| *kind != DeviceKind::Gpu);
        let of_others = &DEVICE_KEYS[..if has_others { DEVICE_KEYS.len() } else { 0 }];
        if kinds.is_empty() {
            kinds.push(DeviceKind::Gpu);
        }
        let mut all = Self::new(rows, Some(&[keys, of_others].concat().join(",")))?;
        for column in wanted.chosen {
            if !all.chosen.iter().any(|known| known.name == column.name) {
                all.chosen.push(column);
            }
        }
        Ok(Self { kinds, ..all })
    }

    /// Returns `true` if the table has a row per process.
    pub(crate) fn has_process_rows(&self) -> bool {
        self.rows == RowKind::Processes
    }

    pub(crate) fn format_header(&self) -> String {
        format_row(self.names().map(str::to_owned))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.chosen.iter().map(|column| &*column.name)
    }

    /// Formats each row of a sample as a line.
    pub(crate) fn format_rows(
        &self,
        inventory: &Inventory,
        sample: &Sample,
        format: Format,
    ) -> String {
        let rows = match self.rows {
            RowKind::Processes => make_process_rows(sample),
            RowKind::Gpus | RowKind::Devices => make_device_rows(inventory, sample, &self.kinds),
        };
        let line = |row| {
            let values = self.chosen.iter().map(|column| column.value(&row));
            format.format_line(self.names(), values)
        };
        rows.into_iter().map(line).collect()
    }
}

impl Format {
    /// Formats a row as a line. In JSON, a missing value is `null`.
    pub(crate) fn format_line(
        self,
        names: impl Iterator<Item = impl Into<String>>,
        values: impl Iterator<Item = Value>,
    ) -> String {
        match self {
            Self::Csv => format_row(values.map(|value| {
                match value {
                    Value::Null => String::new(),
                    Value::String(text) => escape_formula(text),
                    Value::Number(number) => number
                        .as_f64()
                        .filter(|_| number.is_f64())
                        .map_or_else(|| number.to_string(), format_rounded),
                    other => other.to_string(),
                }
            })),
            Self::Ndjson => {
                let entries: Vec<_> = names
                    .zip(values)
                    .map(|(name, value)| format!("{}:{value}", Value::String(name.into())))
                    .collect();
                format!("{{{}}}\n", entries.join(","))
            }
        }
    }
}

/// Returns a list of the available columns with their meanings.
pub(crate) fn format_help(rows: RowKind) -> String {
    let longest = rows.columns().map(|column| column.name.len()).max();
    let longest = longest.unwrap_or(0);
    let line = |column: &Column| {
        let usual = if column.usual { '*' } else { ' ' };
        format!("{usual} {:longest$}  {}\n", column.name, column.help)
    };
    rows.columns().map(line).collect::<String>()
        + "* default column; --columns also accepts `all` and prefixes such as `memory`\n"
}

impl RowKind {
    fn columns(self) -> impl Iterator<Item = &'static Column> {
        let all = match self {
            Self::Processes => &ALL_PROCESS_COLUMNS,
            Self::Gpus | Self::Devices => &ALL_DEVICE_COLUMNS,
        };
        all.iter()
            .filter(move |column| self != Self::Gpus || column.only_if_named.is_none())
    }

    fn find_columns(self, name: &str) -> Vec<&'static Column> {
        let exact: Vec<_> = self
            .columns()
            .filter(|column| column.name == name)
            .collect();
        if !exact.is_empty() {
            return exact;
        }
        let is_meant = |column: &&Column| {
            let rest = column.name.strip_prefix(name);
            (name == ALL_COLUMNS && column.only_if_named.is_none())
                || rest.is_some_and(|rest| rest.starts_with('_'))
        };
        self.columns().filter(is_meant).collect()
    }

    fn describe_unknown_column(self, name: &str) -> String {
        if name == HELP {
            return "'help' cannot be combined with other columns: run gpumon --csv --columns help"
                .to_owned();
        }
        let names = || self.columns().map(|column| &*column.name);
        let groups = names().filter_map(|name| Some(name.split_once('_')?.0));
        let valid = groups.chain(names()).chain([ALL_COLUMNS, HELP]);
        let hint = suggest_word(name, valid, "see gpumon --csv --columns help");
        format!("unknown column '{name}': {hint}")
    }
}

/// Prevents spreadsheets from interpreting a field as a formula: if the first character could start
/// a formula, an apostrophe is added. Numbers need no apostrophe.
fn escape_formula(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        format!("'{text}")
    } else {
        text
    }
}

/// Formats a row according to RFC 4180. Control characters in untrusted text are replaced, so that
/// they cannot end a row or control the terminal.
pub(crate) fn format_row(fields: impl Iterator<Item = String>) -> String {
    let quoted = fields.map(|field| {
        let field: String = field.chars().map(to_printable).collect();
        if field.contains([',', '"']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{BatchJob, MigInstance, Owner, Pod, Process, Reading};

    use super::*;
    use crate::table::examples;

    #[test]
    fn text_that_looks_like_formula_is_escaped() {
        for text in ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"] {
            assert!(
                format_row([escape_formula(text.to_owned())].into_iter()).starts_with('\''),
                "{text:?}"
            );
        }
        assert_eq!(
            format_row(["-5".to_owned(), escape_formula("train.py".to_owned())].into_iter()),
            "-5,train.py\n"
        );
    }

    #[test]
    fn process_with_all_attributes_fills_every_csv_column() {
        let job = || BatchJob {
            job_id: "88123".to_owned(),
            step: None,
            private: false,
        };
        let owned = |owner| Process {
            memory_percent: Reading::Now(1.0),
            encoder_percent: Reading::Now(2.0),
            decoder_percent: Reading::Now(3.0),
            mig: Some(MigInstance {
                gpu_instance: 1,
                compute_instance: 0,
            }),
            owner: Reading::Now(owner),
            ..examples::example_process(7, "ana", 1.0, "python train.py")
        };
        let known = examples::example_processes();
        let owners = || known.iter().filter_map(|process| process.owner.value());
        let process = owned(Owner {
            notebook: owners().find_map(|owner| owner.notebook.clone()),
            container: owners().find_map(|owner| owner.container.clone()),
            slurm: Some(job()),
            pbs: Some(job()),
            lsf: Some(job()),
            pod: Some(Pod {
                uid: "uid".to_owned(),
                namespace: None,
                name: None,
            }),
            unit: Some("train.service".to_owned()),
            ..Owner::default()
        });
        let mut sample = examples::example_sample(1);
        sample.gpus[0].processes = Reading::Now(vec![process]);
        let csv = SelectedColumns::new(RowKind::Processes, Some("all")).unwrap();
        let inventory = examples::example_inventory(1, "NVIDIA H200");
        let rows = csv.format_rows(&inventory, &sample, Format::Csv);
        let header = csv.format_header();
        let cells = header.trim().split(',').zip(rows.trim().split(','));
        for (name, cell) in cells {
            assert!(!cell.is_empty(), "{name} of {rows}");
        }
    }

    #[test]
    fn columns_are_selected_by_name_or_prefix() {
        assert_eq!(
            SelectedColumns::new(RowKind::Gpus, Some("index, uuid"))
                .unwrap()
                .format_header(),
            "index,uuid\n"
        );
        let memory = SelectedColumns::new(RowKind::Gpus, Some("memory"))
            .unwrap()
            .format_header();
        assert!(
            memory.starts_with("memory_used_bytes,") && memory.split(',').count() == 6,
            "{memory}"
        );
        let all = SelectedColumns::new(RowKind::Processes, Some("all"))
            .unwrap()
            .format_header();
        assert_eq!(all.split(',').count(), ALL_PROCESS_COLUMNS.len());
    }

    #[test]
    fn mig_columns_add_mig_rows_and_key_columns() {
        let of = |names| {
            SelectedColumns::with_keys(RowKind::Devices, &["time", "index"], names).unwrap()
        };
        let columns = |names| {
            of(names)
                .format_header()
                .trim()
                .split(',')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for names in [None, Some("all")] {
            assert_eq!(columns(names), {
                let of_gpus = SelectedColumns::with_keys(RowKind::Gpus, &["time", "index"], names)
                    .unwrap()
                    .format_header();
                of_gpus
                    .trim()
                    .split(',')
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            });
        }
        let mixed = of(Some(
            "power.draw_watts,host.cpu.busy_percent,mig.memory.used_bytes",
        ));
        assert_eq!(
            mixed.format_header(),
            "time,index,kind,parent,power_draw_watts,host_cpu_busy_percent,mig_memory_used_bytes\n"
        );
        assert_eq!(mixed.kinds, DeviceKind::ALL);
        assert_eq!(
            of(Some("time,host")).kinds,
            [DeviceKind::Host],
            "what tells rows apart is no reading of GPUs"
        );
        assert!(
            columns(Some("host")).len() > 10
                && columns(Some("mig")).contains(&"mig_activity_sm_percent".to_owned())
        );
        let error =
            SelectedColumns::with_keys(RowKind::Devices, &["time"], Some("host.cpu.bsy_percent"))
                .err()
                .unwrap();
        assert!(
            error.contains("did you mean 'host_cpu_busy_percent'?"),
            "{error}"
        );
    }

    #[test]
    fn unknown_column_error_suggests_nearest() {
        let error = |rows, names| SelectedColumns::new(rows, Some(names)).err().unwrap();
        assert_eq!(
            error(RowKind::Gpus, "index,memroy"),
            "unknown column 'memroy': did you mean 'memory'?"
        );
        assert_eq!(
            error(RowKind::Processes, "memory_byte"),
            "unknown column 'memory_byte': did you mean 'memory_bytes'?"
        );
        assert!(error(RowKind::Gpus, "frobnication").contains("--columns help"));
        assert!(error(RowKind::Gpus, "").contains("unknown column ''"));
    }

    #[test]
    fn columns_have_unique_names_and_help() {
        for rows in [RowKind::Gpus, RowKind::Processes, RowKind::Devices] {
            let known: Vec<_> = rows.columns().collect();
            for (number, column) in known.iter().enumerate() {
                assert_ne!(column.help, "");
                assert!(
                    known[..number]
                        .iter()
                        .all(|other| other.name != column.name),
                    "{}",
                    column.name
                );
            }
        }
    }

    #[test]
    fn separators_in_csv_fields_are_quoted_or_replaced() {
        let fields = ["a,b", "say \"x\"", "one\ntwo\u{1b}", ""].map(str::to_owned);
        assert_eq!(
            format_row(fields.into_iter()),
            "\"a,b\",\"say \"\"x\"\"\",one two ,\n"
        );
    }
}
