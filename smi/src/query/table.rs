//! The table of a query's fields.

use std::{collections::HashMap, fmt::Write as _};

use super::field::{Field, Section};
use super::row::{Gpu, Item, Row};
use crate::{Context, Refusal, release::Release};

/// A query's fields, in the order of its help.
pub(super) struct Table {
    pub(super) subjects: &'static [&'static [Section]],
    /// A function that returns a GPU's items. Each item produces a row.
    pub(super) items: fn(&Gpu<'_>) -> Vec<Item>,
}

/// Selected fields are represented by their indices in the table.
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
                join_cells(chosen.iter().map(|place| fields[*place].text(&row, units)))
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
