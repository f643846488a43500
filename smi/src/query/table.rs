//! The table of the fields of a query.

use std::{collections::HashMap, fmt::Write as _};

use super::FieldHelp;
use super::field::{Field, Section};
use super::row::{Gpu, Item, Row};
use crate::{Context, Refusal, release::Release};

/// The fields of a query, in the order of its help.
pub(super) struct Table {
    pub(super) subjects: &'static [&'static [Section]],
    /// Returns the items of a GPU; there is a row for each of them.
    pub(super) items: fn(&Gpu<'_>) -> Vec<Item>,
}

/// Chosen fields are given as indices into the table.
impl Table {
    fn sections(&self) -> impl Iterator<Item = &'static Section> {
        self.subjects.iter().copied().flatten()
    }

    fn fields(&self) -> Vec<&'static Field> {
        self.sections().flat_map(|section| section.fields).collect()
    }

    /// Finds fields by their comma-separated names. Empty names are ignored, and a field may be
    /// repeated. Returns an error for the first unknown name.
    pub(super) fn choose(&self, names: &str) -> Result<Vec<usize>, Refusal> {
        let fields = self.fields();
        let mut places = HashMap::new();
        for (place, field) in fields.iter().enumerate() {
            for name in field.names() {
                places.entry(name).or_insert(place);
            }
        }
        let find = |name: &str| places.get(name).copied().ok_or_else(|| not_valid(name));
        names
            .split(',')
            .filter(|name| !name.is_empty())
            .map(find)
            .collect()
    }

    /// Returns an error for the first chosen field that this release does not have.
    pub(super) fn check(&self, chosen: &[usize], release: Release) -> Result<(), Refusal> {
        let fields = self.fields();
        let missing = chosen
            .iter()
            .map(|place| fields[*place])
            .find(|field| !field.is_in(release));
        missing
            .and_then(|field| field.names().next())
            .map_or(Ok(()), |name| Err(not_valid(name)))
    }

    /// Returns the header line with its line ending.
    pub(super) fn format_header(&self, chosen: &[usize]) -> String {
        let fields = self.fields();
        line(chosen.iter().map(|place| fields[*place].heading()))
    }

    /// Returns the rows of all GPUs, each with its line ending.
    pub(super) fn rows(&self, chosen: &[usize], context: &Context<'_>, units: bool) -> String {
        let fields = self.fields();
        let of_each_gpu = context.each(|index| {
            let gpu = Gpu::new(context, index);
            let row = |item: &Item| {
                let row = Row { gpu: &gpu, item };
                line(chosen.iter().map(|place| fields[*place].text(&row, units)))
            };
            (self.items)(&gpu).iter().map(row).collect::<String>()
        });
        of_each_gpu.concat()
    }

    pub(super) fn field_help(&self) -> Vec<FieldHelp> {
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

    /// Returns the names and descriptions of all fields that this release has.
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

fn not_valid(name: &str) -> Refusal {
    Refusal::new(
        2,
        format!("Field \"{name}\" is not a valid field to query.\n\n"),
    )
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(", ") + "\n"
}
