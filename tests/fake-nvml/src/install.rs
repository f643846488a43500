//! Copies of the built library for tests, from which functions can be missing.

use std::{
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
    for function in hidden {
        assert!(rename(&mut library, function), "{} exports no {function}; name one that it does", built.display());
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

/// Changes the first letter of a name wherever it stands between two NULs, as names in symbol tables do. Their hash
/// tables still lead to the place, where the loader then finds another name.
fn rename(library: &mut [u8], function: &str) -> bool {
    let pattern: Vec<u8> = [b"\0", function.as_bytes(), b"\0"].concat();
    let places: Vec<usize> =
        library.windows(pattern.len()).enumerate().filter(|(_, window)| *window == pattern).map(|(at, _)| at).collect();
    for at in &places {
        library[at + 1] = b'x';
    }
    !places.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_name_is_renamed() {
        let mut table = b"\0nvmlInit\0nvmlInit_v2\0anvmlInit\0".to_vec();
        assert!(rename(&mut table, "nvmlInit"));
        assert_eq!(table, b"\0xvmlInit\0nvmlInit_v2\0anvmlInit\0");
        assert!(!rename(&mut table, "nvmlShutdown"));
    }
}
