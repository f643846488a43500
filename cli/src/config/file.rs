//! A settings file: the parser, which collects all mistakes in the file, and the writer, which
//! preserves the rest of the file.

use std::{fs, io, ops::Range, path::Path};

use gpumon_probe::{
    private_file::PrivateFileError, safe_file, toml_error::TomlError, untrusted::escape_untrusted,
};
use gpumon_workload::suggest::find_nearest;
use toml::de::{DeTable, DeValue};

use super::{
    SettingsFile,
    keys::{Key, Keys, TABLES},
    read_text,
};

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// The value as command-line arguments. A list has several arguments.
    pub(crate) texts: Vec<String>,
    pub(crate) origin: String,
    /// The line number, starting at 1.
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
pub(crate) struct ParsedFile {
    pub(crate) entries: Vec<Entry>,
    pub(crate) mistakes: Vec<Mistake>,
}

impl Entry {
    pub(super) fn is_switched_off(&self) -> bool {
        self.texts == ["false"]
    }
}

pub(crate) fn parse(file: &SettingsFile, keys: &Keys) -> ParsedFile {
    let origin = escape_untrusted(&file.path.display().to_string());
    let mut parser = Parser {
        text: &file.text,
        folder: file.path.parent().unwrap_or(Path::new("")),
        origin,
        keys,
        parsed: ParsedFile::default(),
    };
    match DeTable::parse(&file.text) {
        Ok(table) => parser.parse_table(None, table.get_ref()),
        Err(error) => parser.parsed.mistakes.push(Mistake {
            table: None,
            error: TomlError::from_parser_error(&error, &file.text, &parser.origin),
        }),
    }
    parser.parsed.entries.sort_by_key(|entry| entry.line);
    parser.add_conflict_mistakes();
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
    parsed: ParsedFile,
}

impl Parser<'_> {
    fn parse_table(&mut self, table: Option<&'static str>, values: &DeTable<'_>) {
        for (name, value) in values {
            let inner = TABLES
                .into_iter()
                .find(|known| table.is_none() && *known == name.get_ref());
            match (inner, value.get_ref(), self.keys.get(table, name.get_ref())) {
                (Some(inner), DeValue::Table(values), _) => self.parse_table(Some(inner), values),
                (Some(inner), ..) => self.add_mistake(
                    table,
                    &name.span(),
                    &format!(
                        "`{inner}` is a table: write the line [{inner}], followed by the \
                     keys of the table"
                    ),
                ),
                (None, value_of, Some(key)) => match key.to_arguments(value_of, self.folder) {
                    Ok(texts) => self.parsed.entries.push(Entry {
                        key: key.clone(),
                        texts,
                        origin: self.origin.clone(),
                        line: find_line_number(self.text, value.span().start),
                    }),
                    Err(cure) => {
                        let written = self
                            .text
                            .get(value.span())
                            .and_then(|text| text.lines().next())
                            .unwrap_or_default();
                        self.add_mistake(
                            table,
                            &value.span(),
                            &format!("`{}` cannot be {written}: {cure}", key.full_name()),
                        );
                    }
                },
                (None, _, None) => self.add_mistake(
                    table,
                    &name.span(),
                    &describe_unknown_key(self.keys, table, name.get_ref()),
                ),
            }
        }
    }

    /// Adds a mistake for each pair of keys in one table that conflict.
    fn add_conflict_mistakes(&mut self) {
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
                    "`{}` cannot be used with `{}` on line {}: remove one of them",
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

    fn add_mistake(&mut self, table: Option<&'static str>, span: &Range<usize>, message: &str) {
        // The error message quotes the file, which may contain control characters.
        let error =
            TomlError::new_at_span(span, self.text, &self.origin, escape_untrusted(message));
        self.parsed.mistakes.push(Mistake { table, error });
    }
}

fn describe_unknown_key(keys: &Keys, table: Option<&str>, name: &str) -> String {
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
        format!("it belongs {}", place(elsewhere.table))
    } else if let Some(near) =
        find_nearest(name, keys.iter_table(table).map(Key::name).chain(tables))
    {
        format!("did you mean `{near}`?")
    } else {
        "`gpumon config example` lists all keys".to_owned()
    };
    format!("unknown key `{name}`{here}: {cure}")
}

/// Writes keys and values to `[table]`, and creates the file and its directory if necessary.
/// Comments, order, empty lines and unknown keys are preserved.
pub(crate) fn write_table(path: &Path, table: &str, values: &[(&str, String)]) -> io::Result<()> {
    let text = match read_text(path) {
        Ok(text) => text,
        Err(PrivateFileError::Unreadable(_, error)) if error.kind() == io::ErrorKind::NotFound => {
            String::new()
        }
        Err(error) => return Err(io::Error::other(error)),
    };
    let text = set_table_values(&text, table, values).map_err(io::Error::other)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // A symbolic link is resolved first, so that the file to which it points is replaced instead of
    // the link itself.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    safe_file::replace(&path, text.as_bytes(), 0o644)
}

pub(super) fn set_table_values(
    text: &str,
    table: &str,
    values: &[(&str, String)],
) -> Result<String, String> {
    let parsed = DeTable::parse(text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| find_line_number(text, span.start));
        format!(
            "line {line}: {}",
            error.message().lines().next().unwrap_or("not TOML")
        )
    })?;
    let known = parsed
        .get_ref()
        .iter()
        .find(|(name, _)| name.get_ref() == table);
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let lines = |new: &[(&str, &str)]| {
        let lines = new
            .iter()
            .flat_map(|(key, value)| [*key, " = ", *value, newline]);
        lines.collect::<String>()
    };
    let mut edited = text.to_owned();
    let Some((name, values_there)) = known else {
        if !edited.is_empty() {
            edited += if edited.ends_with('\n') {
                newline
            } else {
                "\n\n"
            };
        }
        let all: Vec<_> = values
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        return Ok(format!("{edited}[{table}]{newline}{}", lines(&all)));
    };
    let DeValue::Table(there) = values_there.get_ref() else {
        return Err(format!("`{table}` is not a table"));
    };
    if !is_heading(text, name.span().start) {
        return Err(format!(
            "line {}: write `{table}` as a table that starts with the line [{table}]",
            find_line_number(text, name.span().start)
        ));
    }
    let mut places: Vec<(Range<usize>, &str)> = Vec::new();
    let mut new = Vec::new();
    for (key, value) in values {
        match there.iter().find(|(name, _)| name.get_ref() == key) {
            Some((_, before)) => places.push((before.span(), value)),
            None => new.push((*key, value.as_str())),
        }
    }
    // New keys are inserted after the last key of the table itself, before any subtable of the
    // table.
    let own = there.iter().filter(|(_, value)| {
        !matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_))
            || !is_heading(text, value.span().start)
    });
    let last = own
        .map(|(_, value)| value.span().end)
        .max()
        .unwrap_or(name.span().end);
    let end = text[last..]
        .find('\n')
        .map_or(text.len(), |end| last + end + 1);
    let gap = if text[..end].ends_with('\n') {
        ""
    } else {
        newline
    };
    if !new.is_empty() {
        edited.insert_str(end, &(gap.to_owned() + &lines(&new)));
    }
    places.sort_by_key(|(place, _)| place.start);
    for (place, value) in places.into_iter().rev() {
        edited.replace_range(place, value);
    }
    Ok(edited)
}

fn find_line_start(text: &str, place: usize) -> usize {
    text[..place].rfind('\n').map_or(0, |end| end + 1)
}

fn find_line_number(text: &str, place: usize) -> usize {
    text.get(..place)
        .map_or(1, |before| before.matches('\n').count() + 1)
}

/// Returns `true` if the line that contains the offset `place` is a table heading.
fn is_heading(text: &str, place: usize) -> bool {
    text[find_line_start(text, place)..]
        .trim_start()
        .starts_with('[')
}
