//! The table of a query's fields, and the rows that are written from it for each GPU.

use std::{collections::HashMap, fmt::Write as _, ops::Range};

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, SystemQuery};

use super::cell::{Cell, format_number, format_text};
use crate::{Context, Refusal, context::Cache, release::Release};

/// A query's fields, in the order of its help. Selected fields are represented by their indices in
/// the table.
pub(super) struct Table {
    pub(super) subjects: &'static [&'static [Section]],
    /// A function that returns a GPU's items. Each item produces a row.
    pub(super) items: fn(&Gpu<'_>) -> Vec<Item>,
}

/// A field's names and description, as shown in the help.
pub struct FieldHelp {
    /// The field's names, starting with the main name.
    pub names: Vec<&'static str>,
    /// The description of the field.
    pub about: &'static str,
}

impl Table {
    fn sections(&self) -> impl Iterator<Item = &'static Section> {
        self.subjects.iter().copied().flatten()
    }

    fn fields(&self) -> Vec<&'static Field> {
        self.sections().flat_map(|section| section.fields).collect()
    }

    /// Finds fields by their names, which are separated by commas. Empty names are ignored, and a
    /// field may be repeated. Returns an error for the first unknown name.
    pub(super) fn find_fields(&self, names: &str) -> Result<Vec<usize>, Refusal> {
        let fields = self.fields();
        let mut places = HashMap::new();
        for (place, field) in fields.iter().enumerate() {
            for name in field.names() {
                places.entry(name).or_insert(place);
            }
        }
        let find = |name: &str| {
            places
                .get(name)
                .copied()
                .ok_or_else(|| make_invalid_field_refusal(name))
        };
        names
            .split(',')
            .filter(|name| !name.is_empty())
            .map(find)
            .collect()
    }

    /// Returns an error if `release` does not support one of the selected fields. The error is
    /// about the first such field.
    pub(super) fn check_release(&self, chosen: &[usize], release: Release) -> Result<(), Refusal> {
        let fields = self.fields();
        let missing = chosen
            .iter()
            .map(|place| fields[*place])
            .find(|field| !field.is_in(release));
        missing
            .and_then(|field| field.names().next())
            .map_or(Ok(()), |name| Err(make_invalid_field_refusal(name)))
    }

    /// Returns the header line, including its line break.
    pub(super) fn format_header(&self, chosen: &[usize]) -> String {
        let fields = self.fields();
        join_cells(chosen.iter().map(|place| fields[*place].heading()))
    }

    /// Returns the rows of all GPUs, including their line breaks.
    pub(super) fn render_rows(
        &self,
        chosen: &[usize],
        context: &Context<'_>,
        units: bool,
    ) -> String {
        let fields = self.fields();
        let of_each_gpu = context.map_gpus(|index| {
            let gpu = Gpu::new(context, index);
            let row = |item: &Item| {
                let row = Row { gpu: &gpu, item };
                join_cells(
                    chosen
                        .iter()
                        .map(|place| fields[*place].format_value(&row, units)),
                )
            };
            (self.items)(&gpu).iter().map(row).collect::<String>()
        });
        of_each_gpu.concat()
    }

    pub(super) fn list_field_help(&self) -> Vec<FieldHelp> {
        let help = |field: &Field| {
            let mut names: Vec<_> = field.names().collect();
            names.dedup();
            FieldHelp {
                names,
                about: field.about,
            }
        };
        self.fields().into_iter().map(help).collect()
    }

    /// Returns the help, with the names and descriptions of all fields that `release` supports.
    pub(super) fn render_help(&self, switch: &str, release: Release) -> String {
        let mut text =
            format!("List of valid properties to query for the switch \"{switch}\":\n\n");
        for section in self.sections() {
            if let Some((title, about)) = section.title.filter(|_| release >= section.since) {
                let _ = writeln!(text, "Section about {title} properties\n{about}\n");
            }
            for field in section.fields.iter().filter(|field| field.is_in(release)) {
                let names: Vec<_> = field.names().map(|name| format!("\"{name}\"")).collect();
                let _ = writeln!(text, "{}\n{}\n", names.join(" or "), field.about);
            }
        }
        text
    }
}

fn make_invalid_field_refusal(name: &str) -> Refusal {
    Refusal::new(
        2,
        format!("Field \"{name}\" is not a valid field to query.\n\n"),
    )
}

fn join_cells(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(", ") + "\n"
}

// The GPU and item that a row is about, and the answers that its cells need.

/// A GPU whose rows are being written. Answers are cached, so that cells and rows that need the
/// same answer cause only one call.
pub(super) struct Gpu<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) index: u32,
    answers: Cache<Query>,
    system: Cache<SystemQuery>,
}

impl<'a> Gpu<'a> {
    pub(super) fn new(context: &'a Context<'a>, index: u32) -> Self {
        Self {
            context,
            index,
            answers: Cache::default(),
            system: Cache::default(),
        }
    }

    pub(super) fn run_query(&self, query: Query) -> Answer {
        self.answers
            .get_or_query(query, || self.context.run_query(self.index, query))
    }
}

/// The numbers that distinguish a row from the GPU's other rows. If a cell needs a number that is
/// missing, `missing` is its return code.
pub(super) struct Item {
    numbers: Vec<i128>,
    missing: Code,
}

/// Returns a single item without numbers, for tables that have one row per GPU.
pub(super) fn list_single_item(_: &Gpu<'_>) -> Vec<Item> {
    vec![Item {
        numbers: Vec::new(),
        missing: Code::UNKNOWN,
    }]
}

/// Splits a list into items of `COUNT` numbers each, and puts the numbers in `first` before each
/// item. If the list is missing, returns a single item with the return code that states the reason.
pub(super) fn split_items<const COUNT: usize>(first: &[i128], list: Answer) -> Vec<Item> {
    let item = |numbers: &[i128], missing| Item {
        numbers: [first, numbers].concat(),
        missing,
    };
    match list {
        Ok(list) => {
            let all = list.numbers().as_chunks::<COUNT>().0.iter();
            all.map(|numbers| item(numbers, Code::UNKNOWN)).collect()
        }
        Err(code) => vec![item(&[], code)],
    }
}

pub(super) struct Row<'a> {
    pub(super) gpu: &'a Gpu<'a>,
    pub(super) item: &'a Item,
}

impl Row<'_> {
    pub(super) fn run_query(&self, query: Query) -> Answer {
        self.gpu.run_query(query)
    }

    pub(super) fn run_system_query(&self, query: SystemQuery) -> Answer {
        self.gpu
            .system
            .get_or_query(query, || self.gpu.context.run_system_query(query))
    }

    /// Returns a number of the row's item.
    pub(super) fn number_at(&self, place: usize) -> Result<i128, Code> {
        let number = self.item.numbers.get(place).copied();
        number.ok_or(self.item.missing)
    }

    /// Returns the PID, which is the first number of the row's item.
    pub(super) fn pid(&self) -> Result<u32, Code> {
        u32::try_from(self.number_at(0)?).map_err(|_| Code::UNKNOWN)
    }
}

/// Formats a number of the row's item.
pub(super) fn format_nth_number<const PLACE: usize>(row: &Row<'_>) -> Cell {
    Ok(row.number_at(PLACE)?.to_string())
}

// The fields that can be queried, and the sections of the help into which they are grouped.

/// A field of a query.
pub(super) struct Field {
    /// The field's names and unit, as `name [unit]` or `name or alias [unit]`. The unit is
    /// optional.
    spec: &'static str,
    /// The field's description in the help. It must not contain an empty line, because programs
    /// that parse the help treat quoted text after an empty line as a field name.
    pub(super) about: &'static str,
    value: ValueSource,
    since: Release,
    except: Range<Release>,
}

enum ValueSource {
    /// The query whose answer the field shows, and the function that formats the answer.
    Answer(Query, fn(&Answer) -> Cell),
    /// A function that calculates the cell. It can run several queries.
    Computed(fn(&Row<'_>) -> Cell),
}

/// Creates a field that shows the answer to one query.
pub(super) const fn field(
    spec: &'static str,
    query: Query,
    format: fn(&Answer) -> Cell,
    about: &'static str,
) -> Field {
    Field::new(spec, ValueSource::Answer(query, format), about)
}

/// Creates a field that shows the first number of the answer to one query.
pub(super) const fn number_field(spec: &'static str, query: Query, about: &'static str) -> Field {
    field(spec, query, format_number::<0>, about)
}

/// Creates a field whose value requires more than one answer.
pub(super) const fn row_field(
    spec: &'static str,
    cell: fn(&Row<'_>) -> Cell,
    about: &'static str,
) -> Field {
    Field::new(spec, ValueSource::Computed(cell), about)
}

impl Field {
    const fn new(spec: &'static str, value: ValueSource, about: &'static str) -> Self {
        Self {
            spec,
            about,
            value,
            since: Release(0, 0),
            except: Release(0, 0)..Release(0, 0),
        }
    }

    /// Sets the first release that supports the field.
    pub(super) const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }

    /// Sets the range of releases that do not support the field.
    pub(super) const fn except(self, except: Range<Release>) -> Self {
        Self { except, ..self }
    }

    pub(super) fn is_in(&self, release: Release) -> bool {
        release >= self.since && !self.except.contains(&release)
    }

    fn unit(&self) -> Option<&'static str> {
        self.spec.split_once(" [")?.1.strip_suffix(']')
    }

    /// Returns the field's names, starting with the main name. Names are case-sensitive.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.spec
            .split_once(" [")
            .map_or(self.spec, |(names, _)| names)
            .split(" or ")
    }

    /// Returns the heading of the field's column, which consists of the name and the unit.
    pub(super) fn heading(&self) -> String {
        let unit = self.unit().map(|unit| format!(" [{unit}]"));
        self.names()
            .take(1)
            .map(str::to_owned)
            .chain(unit)
            .collect()
    }

    pub(super) fn format_value(&self, row: &Row<'_>, units: bool) -> String {
        let cell = match self.value {
            ValueSource::Answer(query, format) => format(&row.run_query(query)),
            ValueSource::Computed(cell) => cell(row),
        };
        match (cell, self.unit()) {
            (Ok(value), Some(unit)) if units => format!("{value} {unit}"),
            (Ok(value), _) => value,
            (Err(absent), _) => absent.to_string(),
        }
    }
}

/// Consecutive fields in the help. `title` is `None` if the fields have no title.
pub(super) struct Section {
    pub(super) title: Option<(&'static str, &'static str)>,
    /// The first release whose help shows the title.
    pub(super) since: Release,
    pub(super) fields: &'static [Field],
}

impl Section {
    pub(super) const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }
}

/// Creates a section that has a title and a short description.
pub(super) const fn with_title(
    title: &'static str,
    about: &'static str,
    fields: &'static [Field],
) -> Section {
    Section {
        title: Some((title, about)),
        since: Release(0, 0),
        fields,
    }
}

pub(super) const fn fields(fields: &'static [Field]) -> Section {
    Section {
        title: None,
        since: Release(0, 0),
        fields,
    }
}

// The fields for the time and the GPU that all queries except `--query-gpu` have in common.

pub(super) const TIMESTAMP_HELP: &str =
    "The time of the query, in local time, as YYYY/MM/DD HH:MM:SS.msec.";
pub(super) const NAME_HELP: &str = "The product name of the GPU (alphanumeric). It is available \
 for all products.";
pub(super) const BUS_ID_HELP: &str =
    "The PCI bus ID of the GPU, in hexadecimal: domain:bus:device.function.";
pub(super) const SERIAL_HELP: &str = "The serial number that is printed on the board \
 (alphanumeric). It is unique and never changes.";
pub(super) const UUID_HELP: &str = "The UUID of the GPU (alphanumeric). It is unique and never \
 changes. It is not printed on the board.";

pub(super) const COMMON_SECTIONS: &[Section] = &[fields(&[
    row_field("timestamp", format_timestamp, TIMESTAMP_HELP),
    field("gpu_name", Query::Name, format_text, NAME_HELP),
    field("gpu_bus_id", Query::BusId, format_text, BUS_ID_HELP),
    field("gpu_serial", Query::Serial, format_text, SERIAL_HELP),
    field("gpu_uuid", Query::Uuid, format_text, UUID_HELP),
])];

// All cell functions must return a `Result`, even if they cannot fail.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn format_timestamp(row: &Row<'_>) -> Cell {
    Ok(row
        .gpu
        .context
        .now
        .strftime("%Y/%m/%d %H:%M:%S.%3f")
        .to_string())
}
