//! Sets linker options. Every build gets a fixed address, so the loader has no pointers to adjust
//! when the program starts. A release build also gets the order of functions.

use std::env;

/// The linker script, which `make function-order` writes.
const SCRIPT: &str = "cli/functions.ld";

/// The linkers that do not read linker scripts.
const OTHER_LINKERS: [&str; 2] = ["mold", "wild"];

fn main() {
    println!("cargo::rerun-if-changed={SCRIPT}");
    let variable = |name| env::var(name).unwrap_or_default();
    let linker = variable("RUSTC_LINKER") + &variable("CARGO_ENCODED_RUSTFLAGS");
    let reads_scripts = !OTHER_LINKERS.iter().any(|other| linker.contains(other));
    println!("cargo::rustc-link-arg-bins=-no-pie");
    if variable("PROFILE") == "release" && reads_scripts {
        let folder = variable("CARGO_MANIFEST_DIR");
        println!("cargo::rustc-link-arg-bins=-Wl,--script={folder}/{SCRIPT}");
    }
}
