//! Installation of the built library for tests, optionally without some functions.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// The file name that programs look for.
const LIBRARY_NAME: &str = "libnvidia-ml.so.1";
/// The file name that cargo uses.
const BUILT_NAME: &str = "libfake_nvml.so";

/// Installs the built library in `directory` as `libnvidia-ml.so.1`, without the functions in
/// `hidden`. Returns its path.
///
/// If no function is hidden, the file is a link. Otherwise it is a copy of the parts that the
/// loader maps. In its table of dynamic symbols, the hidden functions have other names, so `dlsym`
/// does not find them. The copy looks like the library of a driver that never had these functions.
///
/// # Panics
/// Panics if the library is not built, cannot be copied, or does not export a function in `hidden`.
#[track_caller]
pub fn install(directory: &Path, hidden: &[&str]) -> PathBuf {
    let built = find_built_library();
    let copy = directory.join(LIBRARY_NAME);
    let failed =
        |error: std::io::Error| -> ! { panic!("cannot write {}: {error}", copy.display()) };
    // An earlier call may have created a link with this name. Writing through this link would
    // change the built library.
    let _ = fs::remove_file(&copy);
    if hidden.is_empty() {
        symlink(&built, &copy).unwrap_or_else(|error| failed(error));
        return copy;
    }
    let mut library = read_without_debug_info(&built);
    let renamed = rename_symbols(&mut library, hidden);
    for function in hidden {
        assert!(
            renamed.contains(function),
            "{} does not export {function}; name an exported function",
            built.display()
        );
    }
    fs::write(&copy, library).unwrap_or_else(|error| failed(error));
    copy
}

/// Returns the library without its debug information. This information is most of the file, and is
/// at its end.
fn read_without_debug_info(library: &Path) -> Vec<u8> {
    let mut bytes = fs::read(library)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", library.display()));
    let end = find_loaded_end(&bytes)
        .unwrap_or_else(|| panic!("{} is not a 64-bit shared library", library.display()));
    bytes.truncate(end);
    bytes
}

/// Returns the end of the last segment that the loader maps, from the ELF header and its table of
/// segments.
fn find_loaded_end(elf: &[u8]) -> Option<usize> {
    const LOAD: u64 = 1;
    let number = |at: usize, size: usize| {
        let bytes = elf.get(at..at + size)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    let (table, entry, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let segments = (0..count).map(|at| (table + at * entry) as usize);
    let loaded = segments.filter(|at| number(*at, 4) == Some(LOAD));
    loaded
        .filter_map(|at| Some((number(at + 8, 8)? + number(at + 32, 8)?) as usize))
        .max()
        .filter(|end| *end <= elf.len())
}

/// Returns the library that cargo has built for the running test. It is in the folder of the test
/// or in its parent.
fn find_built_library() -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    let library = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(BUILT_NAME));
    library
        .into_iter()
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!(
                "there is no {BUILT_NAME} next to {}; build it with `cargo build -p fake-nvml`",
                test.display()
            )
        })
}

/// Changes the first letter of these names wherever they are between two NUL bytes, as in symbol
/// tables. The loader looks up a name in a hash table. It still finds the entry of the old name
/// there, but the entry now has another name, so it does not match. Returns the names that were
/// found.
fn rename_symbols<'a>(library: &mut [u8], names: &[&'a str]) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut places = Vec::new();
    let mut begin = 0;
    for word in library.split(|byte| *byte == 0) {
        let is_between_nuls = begin > 0 && begin + word.len() < library.len();
        // Comparing this prefix is fast, and makes most of the slower comparisons unnecessary.
        if is_between_nuls && word.starts_with(b"nvml") {
            let name = names.iter().find(|name| name.as_bytes() == word);
            found.extend(name);
            places.extend(name.map(|_| begin));
        }
        begin += word.len() + 1;
    }
    for place in places {
        library[place] = b'x';
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_symbol_names_are_renamed() {
        let mut table = b"\0nvmlInit\0nvmlInit_v2\0anvmlInit\0".to_vec();
        assert_eq!(
            rename_symbols(&mut table, &["nvmlInit", "nvmlShutdown"])
                .into_iter()
                .collect::<Vec<_>>(),
            ["nvmlInit"]
        );
        assert_eq!(table, b"\0xvmlInit\0nvmlInit_v2\0anvmlInit\0");
    }
}
