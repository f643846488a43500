//! What holds of several files.

use super::parse::Entry;

/// Of each key the last, without what cannot be used with a key of a later file.
pub(super) fn merge(files: impl IntoIterator<Item = Vec<Entry>>) -> Vec<Entry> {
    let mut held: Vec<Entry> = Vec::new();
    for entries in files {
        held.retain(|before| !entries.iter().any(|entry| replaces(entry, before)));
        held.extend(entries);
    }
    held
}

fn replaces(entry: &Entry, before: &Entry) -> bool {
    let is_same = entry.key.full_name() == before.key.full_name();
    is_same
        || !entry.is_switched_off()
            && !before.is_switched_off()
            && entry.key.conflicts_with(&before.key)
}
