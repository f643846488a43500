//! Tells cargo to embed the page anew when it was built anew.

use std::path::Path;

fn main() {
    let page = Path::new("../static/dist");
    // A path that does not exist would make cargo run this, and compile the crate, at every build.
    let watched = if page.exists() { page } else { Path::new("../static") };
    println!("cargo::rerun-if-changed={}", watched.display());
}
