//! Comma-separated values: a row per GPU or per process, in columns whose names and meanings stay. `gpumon export` has the
//! same columns, and on request those of MIG devices and of the host, which have rows of their own.
//!
//! Numbers are bare, and the names tell their units, which are those of the JSON. What is absent is an empty field.

mod devices;
mod field;
mod gpus;
mod processes;

use std::borrow::Cow;

use gpumon_history::wanted::DeviceKind;
use gpumon_probe::{
    model::{GpuSample, Inventory, Sample, fields::Field},
    untrusted::printable,
};
use serde_json::Value;

pub(crate) use self::{
    devices::DEVICE_KEYS,
    field::{rounded, time},
};
use crate::suggest::nearest;

/// One column of rows about `T`.
struct Column<T> {
    name: Cow<'static, str>,
    help: &'static str,
    /// Whether it is there when nothing else was asked for.
    usual: bool,
    /// Whether its texts are values of JSON as they are: numbers, `true` and `false`.
    is_literal: bool,
    /// Of whose rows it is, where it is there only when it is asked for by name.
    beside: Option<DeviceKind>,
    read: Read<T>,
}

/// One whose texts are values of JSON.
const fn literal<T>(mut column: Column<T>) -> Column<T> {
    column.is_literal = true;
    column
}

const fn column<T>(
    name: &'static str,
    help: &'static str,
    read: fn(&T) -> Option<String>,
) -> Column<T> {
    Column {
        name: Cow::Borrowed(name),
        help,
        usual: false,
        is_literal: false,
        beside: None,
        read: Read::Of(read),
    }
}

const fn usual<T>(
    name: &'static str,
    help: &'static str,
    read: fn(&T) -> Option<String>,
) -> Column<T> {
    Column {
        name: Cow::Borrowed(name),
        help,
        usual: true,
        is_literal: false,
        beside: None,
        read: Read::Of(read),
    }
}

/// Takes what a column shows out of a row; `None` where it is absent.
enum Read<T> {
    Of(fn(&T) -> Option<String>),
    Field(&'static Field, fn(&T) -> &GpuSample),
    Made(Made<T>),
}

/// One that knows more than its row.
type Made<T> = Box<dyn Fn(&T) -> Option<String> + Send + Sync>;

impl<T> Read<T> {
    fn text(&self, row: &T) -> Option<String> {
        match self {
            Self::Of(read) => read(row),
            Self::Field(field, gpu) => field.access.value(gpu(row)).map(field::rounded),
            Self::Made(read) => read(row),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Gpus,
    Processes,
    /// GPUs, and MIG devices and the host where a column of theirs is chosen.
    Devices,
}

/// The columns that were chosen, as numbers in their catalogue.
#[derive(Debug)]
pub(crate) struct Csv {
    rows: Rows,
    chosen: Vec<usize>,
    /// Whose rows there are: those of whom a column is named, and those of GPUs where that is nobody's.
    kinds: Vec<DeviceKind>,
}

/// What is asked for instead of names, to see which there are.
pub(crate) const HELP: &str = "help";
const ALL: &str = "all";

impl Csv {
    /// The columns that are named, separated by commas: each by its own name, or several by what their names begin with
    /// (`memory`). Without names, the usual ones.
    pub(crate) fn new(rows: Rows, names: Option<&str>) -> Result<Self, String> {
        let known = rows.catalogue();
        let chosen = match names {
            None => (0..known.len())
                .filter(|column| known[*column].usual)
                .collect(),
            Some(names) => {
                let mut chosen = Vec::new();
                for name in names.split(',').map(str::trim) {
                    let found = find(name, &known);
                    if found.is_empty() {
                        return Err(unknown(name, &known));
                    }
                    chosen.extend(found);
                }
                chosen
            }
        };
        Ok(Self {
            rows,
            chosen,
            kinds: vec![DeviceKind::Gpu],
        })
    }

    /// These columns, and behind them those that are named, as fields of the catalogue are, too (`power.draw_watts`).
    /// Without names, the usual ones.
    pub(crate) fn with_keys(
        rows: Rows,
        keys: &[&str],
        names: Option<&str>,
    ) -> Result<Self, String> {
        let wanted = Self::new(rows, names.map(|names| names.replace('.', "_")).as_deref())?;
        let known = rows.catalogue();
        let of = |kind: DeviceKind| {
            let columns = wanted.chosen.iter().map(|column| &known[*column]);
            let readings = columns.filter(|column| {
                !keys.contains(&column.name) && !DEVICE_KEYS.contains(&column.name)
            });
            readings
                .map(|column| column.beside.unwrap_or(DeviceKind::Gpu))
                .any(|of| of == kind)
        };
        let mut kinds: Vec<_> = DeviceKind::ALL
            .into_iter()
            .filter(|kind| of(*kind))
            .collect();
        let of_others: &[&str] = if kinds.iter().any(|kind| *kind != DeviceKind::Gpu) {
            &DEVICE_KEYS
        } else {
            &[]
        };
        if kinds.is_empty() {
            kinds.push(DeviceKind::Gpu);
        }
        let mut chosen = Self::new(rows, Some(&[keys, of_others].concat().join(",")))?.chosen;
        for column in wanted.chosen {
            if !chosen.contains(&column) {
                chosen.push(column);
            }
        }
        Ok(Self {
            rows,
            chosen,
            kinds,
        })
    }

    /// Returns whether it has a row for each process.
    pub(crate) fn has_processes(&self) -> bool {
        matches!(self.rows, Rows::Processes)
    }

    pub(crate) fn header(&self) -> String {
        row(self.names().into_iter().map(str::to_owned))
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let known = self.rows.catalogue();
        self.chosen
            .iter()
            .map(|column| known[*column].name)
            .collect()
    }

    pub(crate) fn rows(&self, inventory: &Inventory, sample: &Sample) -> String {
        match self.rows {
            Rows::Gpus => draw(&self.chosen, &gpus::COLUMNS, &gpus::rows(inventory, sample)),
            Rows::Processes => draw(&self.chosen, &processes::COLUMNS, &processes::rows(sample)),
            Rows::Devices => draw(
                &self.chosen,
                &devices::COLUMNS,
                &devices::rows(inventory, sample, &self.kinds),
            ),
        }
    }

    /// The same as JSON, an object a line. What is absent is `null`.
    pub(crate) fn json_rows(&self, inventory: &Inventory, sample: &Sample) -> String {
        match self.rows {
            Rows::Gpus => json(&self.chosen, &gpus::COLUMNS, &gpus::rows(inventory, sample)),
            Rows::Processes => json(&self.chosen, &processes::COLUMNS, &processes::rows(sample)),
            Rows::Devices => json(
                &self.chosen,
                &devices::COLUMNS,
                &devices::rows(inventory, sample, &self.kinds),
            ),
        }
    }
}

/// Which columns there are, and what they tell.
pub(crate) fn help(rows: Rows) -> String {
    let known = rows.catalogue();
    let longest = known
        .iter()
        .map(|column| column.name.len())
        .max()
        .unwrap_or(0);
    let line = |column: &Described| {
        let usual = if column.usual { '*' } else { ' ' };
        format!("{usual} {:longest$}  {}\n", column.name, column.help)
    };
    known.iter().map(line).collect::<String>()
        + "* default column; --columns also accepts `all` and prefixes such as `memory`\n"
}

/// A column without what it reads.
struct Described {
    name: &'static str,
    help: &'static str,
    usual: bool,
    beside: Option<DeviceKind>,
}

impl Rows {
    fn catalogue(self) -> Vec<Described> {
        fn described<T>(columns: &'static [Column<T>]) -> Vec<Described> {
            let described = |column: &'static Column<T>| {
                let Column {
                    name,
                    help,
                    usual,
                    beside,
                    ..
                } = column;
                Described {
                    name,
                    help,
                    usual: *usual,
                    beside: *beside,
                }
            };
            columns.iter().map(described).collect()
        }
        match self {
            Self::Gpus => described(&gpus::COLUMNS),
            Self::Processes => described(&processes::COLUMNS),
            Self::Devices => described(&devices::COLUMNS),
        }
    }
}

fn find(name: &str, known: &[Described]) -> Vec<usize> {
    let of = |is_meant: &dyn Fn(&Described) -> bool| -> Vec<usize> {
        (0..known.len())
            .filter(|column| is_meant(&known[*column]))
            .collect()
    };
    match of(&|column| column.name == name) {
        exact if !exact.is_empty() => exact,
        _ if name == ALL => of(&|column| column.beside.is_none()),
        _ => of(&|column| {
            column
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('_'))
        }),
    }
}

fn unknown(name: &str, known: &[Described]) -> String {
    if name == HELP {
        return "'help' stands alone: gpumon --csv --columns help".to_owned();
    }
    let groups = known
        .iter()
        .filter_map(|column| Some(column.name.split_once('_')?.0));
    let valid = groups
        .chain(known.iter().map(|column| column.name))
        .chain([ALL, HELP]);
    match nearest(name, valid) {
        Some(meant) => format!("unknown column '{name}': did you mean '{meant}'?"),
        None => format!("unknown column '{name}': see gpumon --csv --columns help"),
    }
}

fn draw<T>(chosen: &[usize], columns: &[Column<T>], rows: &[T]) -> String {
    let field = |of: &T, column: usize| {
        let column = &columns[column];
        let text = column.read.text(of).unwrap_or_default();
        if column.is_literal {
            text
        } else {
            text_field(text)
        }
    };
    rows.iter()
        .map(|of| row(chosen.iter().map(|column| field(of, *column))))
        .collect()
}

fn json<T>(chosen: &[usize], columns: &[Column<T>], rows: &[T]) -> String {
    let value = |of: &T, column: &Column<T>| match column.read.text(of) {
        None => Value::Null,
        Some(text) if column.is_literal => serde_json::from_str(&text).unwrap_or(Value::Null),
        Some(text) => Value::String(text),
    };
    let entry = |of: &T, column: usize| {
        (
            columns[column].name.to_string(),
            value(of, &columns[column]),
        )
    };
    let object = |of: &T| object(chosen.iter().map(|column| entry(of, *column)));
    rows.iter().map(object).collect()
}

/// An object in a line of its own, its keys in this order.
pub(crate) fn object(entries: impl Iterator<Item = (String, Value)>) -> String {
    let entries: Vec<_> = entries
        .map(|(key, value)| format!("{}:{value}", Value::String(key)))
        .collect();
    format!("{{{}}}\n", entries.join(","))
}

/// Returns a text as a field that no spreadsheet takes for a formula: with an apostrophe before it, if its first character
/// could begin one. Numbers are written as they are.
pub(crate) fn text_field(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        format!("'{text}")
    } else {
        text
    }
}

/// The fields of a row as RFC 4180 has them. What comes from strangers ends no row and drives no terminal.
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
    use super::*;

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
        assert_eq!(all.split(',').count(), processes::COLUMNS.len());
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
        let error =
            Csv::with_keys(Rows::Devices, &["time"], Some("host.cpu.bsy_percent")).unwrap_err();
        assert!(
            error.contains("did you mean 'host_cpu_busy_percent'?"),
            "{error}"
        );
    }

    #[test]
    fn an_unknown_column_is_told_with_the_nearest() {
        let error = |rows, names| Csv::new(rows, Some(names)).unwrap_err();
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
            let known = rows.catalogue();
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
