//! Compresses what the program only prints.

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::Write,
    path::Path,
};

use flate2::{Compression, write::ZlibEncoder};

const PRINTED: [&str; 1] = ["src/commands/schema/schema.json"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    for path in PRINTED.map(Path::new) {
        println!("cargo::rerun-if-changed={}", path.display());
        let packed = File::create(Path::new(&out).join(path.file_name().unwrap_or_default()))?;
        let mut encoder = ZlibEncoder::new(packed, Compression::best());
        encoder.write_all(&fs::read(path)?)?;
        encoder.finish()?;
    }
    Ok(())
}
