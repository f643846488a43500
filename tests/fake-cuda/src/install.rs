//! Installation of the built library for tests.

use std::{
    env,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// The file name that programs look for.
const LIBRARY_NAME: &str = "libcuda.so.1";
/// The file name that cargo uses.
const BUILT_NAME: &str = "libfake_cuda.so";

/// Links the built library into `directory` as `libcuda.so.1`. Returns the path of the link.
///
/// # Panics
/// Panics if the library is not built, or if the file exists.
#[track_caller]
pub fn install(directory: &Path) -> PathBuf {
    let place = directory.join(LIBRARY_NAME);
    let built = find_built_library();
    symlink(&built, &place)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", place.display()));
    place
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
                "there is no {BUILT_NAME} next to {}; build it with `cargo build -p fake-cuda`",
                test.display()
            )
        })
}
