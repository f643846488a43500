//! The file of settings: TOML, of which nothing is lost when it is written.

use std::{
    fs, io,
    io::Write,
    ops::{Range, RangeInclusive},
    path::{Path, PathBuf},
};

use thiserror::Error;
use toml::de::{DeTable, DeValue};

use crate::{suggest::nearest, top::text::printable};

#[derive(Debug, Clone)]
pub(in crate::top) struct File {
    pub(in crate::top) path: PathBuf,
    text: String,
    /// It is not on disk yet.
    pub(in crate::top) is_new: bool,
}

#[derive(Debug, Error)]
pub(in crate::top) enum BadSettings {
    #[error("cannot read {path}: {cause}; check the path")]
    Unreadable { path: String, cause: io::Error },
    #[error("{path}, line {line}: {problem}")]
    Line { path: String, line: usize, problem: String },
}

pub(super) struct Entry<'a> {
    pub(super) key: String,
    value: DeValue<'a>,
    /// Where the value stands in the text.
    place: Range<usize>,
    file: &'a File,
}

impl File {
    /// The file that somebody named; where it is not there yet, an empty one that can be written, if its folder is there.
    pub(in crate::top) fn named(path: &Path) -> Result<Self, BadSettings> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match fs::read_to_string(path) {
            Ok(text) => Ok(Self { path: path.to_owned(), text, is_new: false }),
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_none_or(Path::is_dir) => {
                Ok(Self::empty(path))
            }
            Err(cause) => Err(unreadable(path, cause)),
        }
    }

    /// The file that nobody named, and what is wrong with it where it is there and cannot be read.
    pub(in crate::top) fn usual(path: &Path) -> (Self, Option<BadSettings>) {
        match fs::read_to_string(path) {
            Ok(text) => (Self { path: path.to_owned(), text, is_new: false }, None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Self::empty(path), None),
            Err(cause) => (Self::empty(path), Some(unreadable(path, cause))),
        }
    }

    fn empty(path: &Path) -> Self {
        Self { path: path.to_owned(), text: String::new(), is_new: true }
    }

    pub(super) fn entries(&self) -> Result<Vec<Entry<'_>>, BadSettings> {
        let table = DeTable::parse(&self.text).map_err(|error| {
            let place = error.span().map_or(0, |span| span.start);
            self.error(place, error.message().lines().next().unwrap_or("not TOML"))
        })?;
        let entries = table.into_inner().into_iter().map(|(key, value)| {
            let place = value.span();
            Entry { key: key.into_inner().into_owned(), value: value.into_inner(), place, file: self }
        });
        Ok(entries.collect())
    }

    /// Writes these settings into it, and leaves everything else in it as it is: comments, order, and empty lines.
    pub(in crate::top) fn write(&mut self, settings: &[(&str, String)]) -> io::Result<()> {
        // Somebody may have edited it meanwhile.
        let (current, bad) = Self::usual(&self.path);
        if let Some(bad) = bad {
            return Err(io::Error::other(bad));
        }
        let text = current.with(settings).map_err(io::Error::other)?;
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        // A link is followed, so that settings kept elsewhere stay there.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let beside = path.with_extension(format!("toml.{}", std::process::id()));
        let written = fs::File::create(&beside).and_then(|mut file| {
            if let Ok(before) = fs::metadata(&path) {
                file.set_permissions(before.permissions())?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&beside, &path)).inspect_err(|_| drop(fs::remove_file(&beside)))?;
        self.text = text;
        Ok(())
    }

    fn with(&self, settings: &[(&str, String)]) -> Result<String, BadSettings> {
        let entries = self.entries()?;
        let mut places: Vec<(Range<usize>, &str)> = Vec::new();
        let mut new = String::new();
        for (key, value) in settings {
            match entries.iter().find(|entry| entry.key == *key) {
                Some(entry) => places.push((entry.place.clone(), value)),
                None => new.extend([key, " = ", value.as_str(), "\n"]),
            }
        }
        places.sort_by_key(|(place, _)| place.start);
        let mut text = self.text.clone();
        for (place, value) in places.into_iter().rev() {
            text.replace_range(place, value);
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        // What stands behind the heading of a table is part of it.
        let end = first_heading(&text).unwrap_or(text.len());
        text.insert_str(end, &new);
        Ok(text)
    }

    fn error(&self, place: usize, problem: &str) -> BadSettings {
        let line = self.text.get(..place).map_or(1, |before| before.matches('\n').count() + 1);
        // What is quoted of the file can hold anything.
        BadSettings::Line { path: printable(&self.path.display().to_string()), line, problem: printable(problem) }
    }
}

fn unreadable(path: &Path, cause: io::Error) -> BadSettings {
    BadSettings::Unreadable { path: printable(&path.display().to_string()), cause }
}

/// Where the first table begins, with the comments above its heading.
fn first_heading(text: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?.into_inner();
    let line = |place: usize| text[..place].rfind('\n').map_or(0, |end| end + 1);
    let begins = table.keys().map(|key| line(key.span().start));
    let mut begin = begins.filter(|begin| text[*begin..].trim_start().starts_with('[')).min()?;
    while begin > 0 && text[line(begin - 1)..].starts_with('#') {
        begin = line(begin - 1);
    }
    Some(begin)
}

impl Entry<'_> {
    pub(super) fn one_of<T>(&self, valid: &[&str], meaning: impl Fn(&str) -> Option<T>) -> Result<T, BadSettings> {
        let word = self.value.as_str().ok_or_else(|| self.bad(&format!("use one of {}", valid.join(", "))))?;
        meaning(word).ok_or_else(|| self.unknown(word, valid))
    }

    /// Some of these words, none twice.
    pub(super) fn several_of<T: PartialEq>(
        &self,
        valid: &[&str],
        meaning: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, BadSettings> {
        let usage = || self.bad(&format!("use a list, as [\"{}\"]", valid[0]));
        let mut meant = Vec::new();
        for word in self.value.as_array().filter(|list| !list.is_empty()).ok_or_else(usage)? {
            let word = word.get_ref().as_str().ok_or_else(usage)?;
            let meaning = meaning(word).ok_or_else(|| self.unknown(word, valid))?;
            if !meant.contains(&meaning) {
                meant.push(meaning);
            }
        }
        Ok(meant)
    }

    pub(super) fn number(&self, range: RangeInclusive<u32>) -> Result<u32, BadSettings> {
        let number = self.value.as_integer().and_then(|number| number.as_str().parse::<u32>().ok());
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.bad(&format!("use a number from {} to {}", range.start(), range.end())))
    }

    /// Two of them, the smaller first.
    pub(super) fn percentages(&self) -> Result<[u32; 2], BadSettings> {
        let number = |value: &DeValue<'_>| value.as_integer()?.as_str().parse::<u32>().ok();
        let numbers: Option<Vec<u32>> =
            self.value.as_array().and_then(|list| list.iter().map(|value| number(value.get_ref())).collect());
        match numbers.as_deref() {
            Some([low, high]) if 1 <= *low && low < high && *high <= 100 => Ok([*low, *high]),
            _ => Err(self.bad("use two percentages from 1 to 100, the smaller first, as [10, 75]")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, BadSettings> {
        self.value.as_bool().ok_or_else(|| self.bad("use true or false"))
    }

    pub(super) fn bad(&self, cure: &str) -> BadSettings {
        let written = self.file.text.get(self.place.clone()).unwrap_or_default();
        let written = written.lines().next().unwrap_or_default();
        self.error(&format!("{} cannot be {written}: {cure}", self.key))
    }

    pub(super) fn error(&self, problem: &str) -> BadSettings {
        self.file.error(self.place.start, problem)
    }

    fn unknown(&self, word: &str, valid: &[&str]) -> BadSettings {
        let hint = nearest(word, valid.iter().copied())
            .map_or_else(|| format!("use one of {}", valid.join(", ")), |near| format!("did you mean '{near}'?"));
        self.error(&format!("{} cannot be '{word}': {hint}", self.key))
    }
}
