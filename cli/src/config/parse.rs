//! The parser of a settings file, which collects all mistakes in it.

use std::{ops::Range, path::Path};

use gpumon_probe::{toml_error::TomlError, untrusted::escaped};
use gpumon_workload::suggest::nearest;
use toml::de::{DeTable, DeValue};

use super::{
    SettingsFile,
    keys::{Key, Keys, TABLES},
};

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// The value as command-line arguments; several for a list.
    pub(crate) texts: Vec<String>,
    pub(crate) origin: String,
    /// The line number, from 1.
    pub(crate) line: usize,
}

/// A mistake in a settings file.
#[derive(Debug, Clone)]
pub(crate) struct Mistake {
    /// The table with the mistake; `None` if the mistake affects every command.
    pub(crate) table: Option<&'static str>,
    pub(crate) error: TomlError,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Parsed {
    pub(crate) entries: Vec<Entry>,
    pub(crate) mistakes: Vec<Mistake>,
}

impl Entry {
    pub(super) fn is_switched_off(&self) -> bool {
        self.texts == ["false"]
    }
}

pub(crate) fn parse(file: &SettingsFile, keys: &Keys) -> Parsed {
    let origin = escaped(&file.path.display().to_string());
    let mut parser = Parser {
        text: &file.text,
        folder: file.path.parent().unwrap_or(Path::new("")),
        origin,
        keys,
        parsed: Parsed::default(),
    };
    match DeTable::parse(&file.text) {
        Ok(table) => parser.table(None, table.get_ref()),
        Err(error) => parser.parsed.mistakes.push(Mistake {
            table: None,
            error: TomlError::parse(&error, &file.text, &parser.origin),
        }),
    }
    parser.parsed.entries.sort_by_key(|entry| entry.line);
    parser.contradictions();
    let Parser { mut parsed, .. } = parser;
    parsed
        .mistakes
        .sort_by_key(|mistake| (mistake.error.line, mistake.error.column));
    parsed
}

struct Parser<'a> {
    text: &'a str,
    folder: &'a Path,
    origin: String,
    keys: &'a Keys,
    parsed: Parsed,
}

impl Parser<'_> {
    fn table(&mut self, table: Option<&'static str>, values: &DeTable<'_>) {
        for (name, value) in values {
            let inner = TABLES
                .into_iter()
                .find(|known| table.is_none() && *known == name.get_ref());
            match (inner, value.get_ref(), self.keys.get(table, name.get_ref())) {
                (Some(inner), DeValue::Table(values), _) => self.table(Some(inner), values),
                (Some(inner), ..) => self.mistake(
                    table,
                    &name.span(),
                    &format!("`{inner}` is a table: write [{inner}] and its keys below it"),
                ),
                (None, value_of, Some(key)) => match key.texts(value_of, self.folder) {
                    Ok(texts) => {
                        let TomlError { line, .. } =
                            TomlError::at(&value.span(), self.text, "", String::new());
                        self.parsed.entries.push(Entry {
                            key: key.clone(),
                            texts,
                            origin: self.origin.clone(),
                            line,
                        });
                    }
                    Err(cure) => {
                        let written = self
                            .text
                            .get(value.span())
                            .and_then(|text| text.lines().next())
                            .unwrap_or_default();
                        self.mistake(
                            table,
                            &value.span(),
                            &format!("`{}` cannot be {written}: {cure}", key.full_name()),
                        );
                    }
                },
                (None, _, None) => self.mistake(
                    table,
                    &name.span(),
                    &unknown(self.keys, table, name.get_ref()),
                ),
            }
        }
    }

    /// Adds a mistake for each pair of keys in one table that conflict.
    fn contradictions(&mut self) {
        let entries = std::mem::take(&mut self.parsed.entries);
        for (place, entry) in entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| !entry.is_switched_off())
        {
            let others = entries[..place]
                .iter()
                .filter(|other| !other.is_switched_off());
            for other in others.filter(|other| other.key.conflicts_with(&entry.key)) {
                let (later, earlier) = if other.line > entry.line {
                    (other, entry)
                } else {
                    (entry, other)
                };
                let message = format!(
                    "`{}` cannot be used with `{}` of line {}: remove one of them",
                    later.key.full_name(),
                    earlier.key.full_name(),
                    earlier.line
                );
                let error = TomlError {
                    origin: self.origin.clone(),
                    line: later.line,
                    column: 1,
                    message,
                };
                self.parsed.mistakes.push(Mistake {
                    table: later.key.table,
                    error,
                });
            }
        }
        self.parsed.entries = entries;
    }

    fn mistake(&mut self, table: Option<&'static str>, span: &Range<usize>, message: &str) {
        // The message quotes the file, which may contain control characters.
        let error = TomlError::at(span, self.text, &self.origin, escaped(message));
        self.parsed.mistakes.push(Mistake { table, error });
    }
}

fn unknown(keys: &Keys, table: Option<&str>, name: &str) -> String {
    let place = |table: Option<&str>| {
        table.map_or_else(
            || "before the first table".to_owned(),
            |table| format!("below [{table}]"),
        )
    };
    let here = table
        .map(|table| format!(" in [{table}]"))
        .unwrap_or_default();
    let tables = TABLES.into_iter().filter(|_| table.is_none());
    let cure = if let Some(elsewhere) = keys.iter().find(|key| key.name() == name) {
        format!("it stands {}", place(elsewhere.table))
    } else if let Some(near) = nearest(name, keys.of(table).map(Key::name).chain(tables)) {
        format!("did you mean `{near}`?")
    } else {
        "`gpumon config example` lists all keys".to_owned()
    };
    format!("unknown key `{name}`{here}: {cure}")
}
