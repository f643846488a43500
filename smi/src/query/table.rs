//! All that one query can be asked.

use std::{fmt::Write as _, iter};

use super::FieldHelp;
use super::choice::{Choice, Fields};
use super::field::{Field, Section};
use super::row::Gpu;
use crate::Refusal;

/// The fields of a query, in the order of its help.
pub(super) struct Table<T: 'static> {
    pub(super) subjects: &'static [&'static [Section<T>]],
    pub(super) items: fn(&Gpu<'_>) -> Vec<T>,
}

pub(super) trait AnyTable {
    /// Finds fields by their names, which commas part. Empty ones are passed over, others may come twice.
    fn choose(&self, names: &str) -> Result<Box<dyn Choice>, Refusal>;

    fn field_help(&self) -> Vec<FieldHelp>;

    /// The list of all names, with what they mean.
    fn help(&self, switch: &str) -> String;
}

impl<T> Table<T> {
    fn sections(&self) -> impl Iterator<Item = &'static Section<T>> + use<T> {
        self.subjects.iter().copied().flatten()
    }

    fn find(&self, name: &str) -> Result<&'static Field<T>, Refusal> {
        self.sections()
            .flat_map(|section| section.fields)
            .find(|field| field.is_called(name))
            .ok_or_else(|| Refusal::new(2, format!("Field \"{name}\" is not a valid field to query.\n\n")))
    }
}

impl<T> AnyTable for Table<T> {
    fn choose(&self, names: &str) -> Result<Box<dyn Choice>, Refusal> {
        let names = names.split(',').filter(|name| !name.is_empty());
        let fields = names.map(|name| self.find(name)).collect::<Result<_, _>>()?;
        Ok(Box::new(Fields { fields, items: self.items }))
    }

    fn field_help(&self) -> Vec<FieldHelp> {
        let fields = self.sections().flat_map(|section| section.fields);
        let names = |field: &Field<T>| {
            let alias = field.alias.filter(|alias| *alias != field.name);
            iter::once(field.name).chain(alias).collect()
        };
        fields.map(|field| FieldHelp { names: names(field), about: field.about }).collect()
    }

    fn help(&self, switch: &str) -> String {
        let mut text = format!("List of valid properties to query for the switch \"{switch}\":\n\n");
        for section in self.sections() {
            if let Some((title, about)) = section.title {
                let _ = writeln!(text, "Section about {title} properties\n{about}\n");
            }
            for field in section.fields {
                let alias = field.alias.map(|alias| format!(" or \"{alias}\"")).unwrap_or_default();
                let _ = writeln!(text, "\"{}\"{alias}\n{}\n", field.name, field.about);
            }
        }
        text
    }
}
