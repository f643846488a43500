//! The built library for tests.

use std::{
    env,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// The name that programs look for.
const NAME: &str = "libcuda.so.1";
/// The name that cargo gives the library.
const BUILT: &str = "libfake_cuda.so";

/// Puts the built library into `directory` as `libcuda.so.1` and returns its path there.
///
/// # Panics
/// Where the library is not built, or something is in its place.
#[track_caller]
pub fn install(directory: &Path) -> PathBuf {
    let place = directory.join(NAME);
    let built = built();
    symlink(&built, &place)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", place.display()));
    place
}

/// The library that cargo built together with the running test, in its folder or the one above.
fn built() -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    let beside = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(BUILT));
    beside
        .into_iter()
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!(
                "there is no {BUILT} beside {}; build it with `cargo build -p fake-cuda`",
                test.display()
            )
        })
}
