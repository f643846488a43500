//! Comma-separated values: a row per GPU or per process, with columns whose names and meanings are
//! stable. `gpumon export` has the same columns, and on request also rows for MIG devices and the
//! host. Their numbers have separate columns, so that the sum of a column counts no memory twice.
//!
//! Numbers have no units; the column names contain the units, which are those of the JSON. A
//! missing value is an empty field.

mod columns;

use gpumon_history::wanted::DeviceKind;
use gpumon_probe::{
    model::{Inventory, Sample},
    untrusted::printable,
};
use serde_json::Value;

use self::columns::{Column, DEVICES, PROCESSES, device_rows, process_rows};
pub(crate) use self::columns::{DEVICE_KEYS, format_rounded, format_timestamp};
use crate::suggest::nearest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Gpus,
    Processes,
    /// GPUs, and also MIG devices and the host if a column of theirs is selected.
    Devices,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Comma-separated values with a header
    Csv,
    /// One JSON object per line
    Ndjson,
}

/// The selected columns of a table.
pub(crate) struct Csv {
    rows: Rows,
    chosen: Vec<&'static Column>,
    /// The kinds of devices with rows: those that have a selected column, or else GPUs.
    kinds: Vec<DeviceKind>,
}

/// The value of an option for columns that lists the available columns.
pub(crate) const HELP: &str = "help";
const ALL: &str = "all";

impl Csv {
    /// Selects columns by a comma-separated list of names or of prefixes such as `memory`. Without
    /// names, the default columns are selected.
    pub(crate) fn new(rows: Rows, names: Option<&str>) -> Result<Self, String> {
        let mut chosen = Vec::new();
        match names {
            None => chosen.extend(rows.columns().filter(|column| column.usual)),
            Some(names) => {
                for name in names.split(',').map(str::trim) {
                    let before = chosen.len();
                    chosen.extend(rows.find(name));
                    if chosen.len() == before {
                        return Err(rows.explain_unknown(name));
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

    /// Selects these key columns, followed by the named columns. Names may also be IDs of fields
    /// (`power.draw_watts`). Without names, the default columns are selected.
    pub(crate) fn with_keys(
        rows: Rows,
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
    pub(crate) fn has_processes(&self) -> bool {
        self.rows == Rows::Processes
    }

    pub(crate) fn header(&self) -> String {
        row(self.names().map(str::to_owned))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.chosen.iter().map(|column| &*column.name)
    }

    /// Returns a line for each row of a sample.
    pub(crate) fn rows(&self, inventory: &Inventory, sample: &Sample, format: Format) -> String {
        let rows = match self.rows {
            Rows::Processes => process_rows(sample),
            Rows::Gpus | Rows::Devices => device_rows(inventory, sample, &self.kinds),
        };
        let line = |row| {
            let values = self.chosen.iter().map(|column| column.value(&row));
            format.line(self.names(), values)
        };
        rows.into_iter().map(line).collect()
    }
}

impl Format {
    /// Returns the line of a row. In JSON, a missing value is `null`.
    pub(crate) fn line(
        self,
        names: impl Iterator<Item = impl Into<String>>,
        values: impl Iterator<Item = Value>,
    ) -> String {
        match self {
            Self::Csv => row(values.map(|value| match value {
                Value::Null => String::new(),
                Value::String(text) => text_field(text),
                Value::Number(number) => number
                    .as_f64()
                    .filter(|_| number.is_f64())
                    .map_or_else(|| number.to_string(), format_rounded),
                other => other.to_string(),
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
pub(crate) fn help(rows: Rows) -> String {
    let longest = rows.columns().map(|column| column.name.len()).max();
    let longest = longest.unwrap_or(0);
    let line = |column: &Column| {
        let usual = if column.usual { '*' } else { ' ' };
        format!("{usual} {:longest$}  {}\n", column.name, column.help)
    };
    rows.columns().map(line).collect::<String>()
        + "* default column; --columns also accepts `all` and prefixes such as `memory`\n"
}

impl Rows {
    fn columns(self) -> impl Iterator<Item = &'static Column> {
        let all = match self {
            Self::Processes => &PROCESSES,
            Self::Gpus | Self::Devices => &DEVICES,
        };
        all.iter()
            .filter(move |column| self != Self::Gpus || column.only_if_named.is_none())
    }

    fn find(self, name: &str) -> Vec<&'static Column> {
        let exact: Vec<_> = self
            .columns()
            .filter(|column| column.name == name)
            .collect();
        if !exact.is_empty() {
            return exact;
        }
        let is_meant = |column: &&Column| {
            let rest = column.name.strip_prefix(name);
            (name == ALL && column.only_if_named.is_none())
                || rest.is_some_and(|rest| rest.starts_with('_'))
        };
        self.columns().filter(is_meant).collect()
    }

    fn explain_unknown(self, name: &str) -> String {
        if name == HELP {
            return "'help' stands alone: gpumon --csv --columns help".to_owned();
        }
        let names = || self.columns().map(|column| &*column.name);
        let groups = names().filter_map(|name| Some(name.split_once('_')?.0));
        match nearest(name, groups.chain(names()).chain([ALL, HELP])) {
            Some(meant) => format!("unknown column '{name}': did you mean '{meant}'?"),
            None => format!("unknown column '{name}': see gpumon --csv --columns help"),
        }
    }
}

/// Returns a text as a field that spreadsheets do not interpret as a formula: an apostrophe is
/// added if the first character could start a formula. Numbers need no apostrophe.
fn text_field(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        format!("'{text}")
    } else {
        text
    }
}

/// Formats a row as in RFC 4180. Control characters in untrusted texts are replaced, so that they
/// cannot end a row or control the terminal.
pub(crate) fn row(fields: impl Iterator<Item = String>) -> String {
    let quoted = fields.map(|field| {
        let field: String = field.chars().map(printable).collect();
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
    fn text_that_begins_a_formula_is_escaped() {
        for text in ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"] {
            assert!(
                row([text_field(text.to_owned())].into_iter()).starts_with('\''),
                "{text:?}"
            );
        }
        assert_eq!(
            row(["-5".to_owned(), text_field("train.py".to_owned())].into_iter()),
            "-5,train.py\n"
        );
    }

    #[test]
    fn columns_of_complete_process_have_values() {
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
            ..examples::process(7, "ana", 1.0, "python train.py")
        };
        let known = examples::processes();
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
        let mut sample = examples::sample(1);
        sample.gpus[0].processes = Reading::Now(vec![process]);
        let csv = Csv::new(Rows::Processes, Some("all")).unwrap();
        let inventory = examples::inventory(1, "NVIDIA H200");
        let rows = csv.rows(&inventory, &sample, Format::Csv);
        let header = csv.header();
        let cells = header.trim().split(',').zip(rows.trim().split(','));
        for (name, cell) in cells {
            assert!(!cell.is_empty(), "{name} of {rows}");
        }
    }

    #[test]
    fn columns_are_named_alone_or_by_what_they_begin_with() {
        assert_eq!(
            Csv::new(Rows::Gpus, Some("index, uuid")).unwrap().header(),
            "index,uuid\n"
        );
        let memory = Csv::new(Rows::Gpus, Some("memory")).unwrap().header();
        assert!(
            memory.starts_with("memory_used_bytes,") && memory.split(',').count() == 6,
            "{memory}"
        );
        let all = Csv::new(Rows::Processes, Some("all")).unwrap().header();
        assert_eq!(all.split(',').count(), PROCESSES.len());
    }

    #[test]
    fn columns_of_other_devices_than_gpus_come_by_their_names_alone_with_what_tells_rows_apart() {
        let of = |names| Csv::with_keys(Rows::Devices, &["time", "index"], names).unwrap();
        let columns = |names| {
            of(names)
                .header()
                .trim()
                .split(',')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for names in [None, Some("all")] {
            assert_eq!(columns(names), {
                let of_gpus = Csv::with_keys(Rows::Gpus, &["time", "index"], names)
                    .unwrap()
                    .header();
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
            mixed.header(),
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
        let error = Csv::with_keys(Rows::Devices, &["time"], Some("host.cpu.bsy_percent"))
            .err()
            .unwrap();
        assert!(
            error.contains("did you mean 'host_cpu_busy_percent'?"),
            "{error}"
        );
    }

    #[test]
    fn an_unknown_column_is_told_with_the_nearest() {
        let error = |rows, names| Csv::new(rows, Some(names)).err().unwrap();
        assert_eq!(
            error(Rows::Gpus, "index,memroy"),
            "unknown column 'memroy': did you mean 'memory'?"
        );
        assert_eq!(
            error(Rows::Processes, "memory_byte"),
            "unknown column 'memory_byte': did you mean 'memory_bytes'?"
        );
        assert!(error(Rows::Gpus, "frobnication").contains("--columns help"));
        assert!(error(Rows::Gpus, "").contains("unknown column ''"));
    }

    #[test]
    fn every_column_has_its_own_name_and_an_explanation() {
        for rows in [Rows::Gpus, Rows::Processes, Rows::Devices] {
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
    fn fields_cannot_break_out_of_their_row() {
        let fields = ["a,b", "say \"x\"", "one\ntwo\u{1b}", ""].map(str::to_owned);
        assert_eq!(
            row(fields.into_iter()),
            "\"a,b\",\"say \"\"x\"\"\",one two ,\n"
        );
    }
}
