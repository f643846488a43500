//! Copies of the built library for tests, from which functions can be missing.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

/// The name that programs look for.
const NAME: &str = "libnvidia-ml.so.1";
/// The name that cargo gives the library.
const BUILT: &str = "libfake_nvml.so";

/// Copies the built library to `directory` as `libnvidia-ml.so.1`, without the functions in `hidden`, and returns the
/// copy's path.
///
/// A hidden function is renamed in the copy's table of dynamic symbols, so that `dlsym` does not find it: the copy
/// looks as the library of a driver that has never had it.
///
/// # Panics
/// Where the library is not built, cannot be copied, or does not export a function that should be hidden: a test that
/// goes on without what it asked for tests nothing.
#[track_caller]
pub fn install(directory: &Path, hidden: &[&str]) -> PathBuf {
    let built = built();
    let mut library = fs::read(&built).unwrap_or_else(|error| panic!("cannot read {}: {error}", built.display()));
    let renamed = rename(&mut library, hidden);
    for function in hidden {
        assert!(renamed.contains(function), "{} exports no {function}; name one that it does", built.display());
    }
    let copy = directory.join(NAME);
    fs::write(&copy, library).unwrap_or_else(|error| panic!("cannot write {}: {error}", copy.display()));
    copy
}

/// The library that cargo built together with the running test, in its folder or the one above.
fn built() -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    let beside = test.ancestors().skip(1).take(2).map(|folder| folder.join(BUILT));
    beside.into_iter().find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("there is no {BUILT} beside {}; build it with `cargo build -p fake-nvml`", test.display())
    })
}

/// Changes the first letter of names wherever they stand between two NULs, as names in symbol tables do. Their hash
/// tables still lead to the place, where the loader then finds another name. Gives the names that it found.
fn rename<'a>(library: &mut [u8], names: &[&'a str]) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut places = Vec::new();
    let mut begin = 0;
    for word in library.split(|byte| *byte == 0) {
        let is_between_nuls = begin > 0 && begin + word.len() < library.len();
        // Few words begin like this, so that the names are seldom compared.
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
    fn only_the_whole_name_is_renamed() {
        let mut table = b"\0nvmlInit\0nvmlInit_v2\0anvmlInit\0".to_vec();
        assert_eq!(rename(&mut table, &["nvmlInit", "nvmlShutdown"]).into_iter().collect::<Vec<_>>(), ["nvmlInit"]);
        assert_eq!(table, b"\0xvmlInit\0nvmlInit_v2\0anvmlInit\0");
    }
}
