//! Writes values to a table of a settings file. Comments, order, empty lines and unknown keys are
//! preserved.

use std::{fs, io, ops::Range, path::Path};

use gpumon_probe::{private_file::PrivateFileError, safe_file};
use toml::de::{DeTable, DeValue};

use super::read_text;

/// Writes keys and values to `[table]`, and creates the file and its directory if necessary.
pub(crate) fn write_table(path: &Path, table: &str, values: &[(&str, String)]) -> io::Result<()> {
    let text = match read_text(path) {
        Ok(text) => text,
        Err(PrivateFileError::Unreadable(_, error)) if error.kind() == io::ErrorKind::NotFound => {
            String::new()
        }
        Err(error) => return Err(io::Error::other(error)),
    };
    let text = edit_text(&text, table, values).map_err(io::Error::other)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Resolving a symbolic link replaces the target of the link instead of the link itself.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    safe_file::replace(&path, text.as_bytes(), 0o644)
}

pub(super) fn edit_text(
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
    if !text[find_line_start(text, name.span().start)..]
        .trim_start()
        .starts_with('[')
    {
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
    // New keys are inserted after the table's last key, before any subtable.
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
