//! Compresses what the program only prints.

use std::{env, error::Error, fs::File, io, path::Path};

use flate2::{Compression, read::GzEncoder};

const PRINTED: [&str; 2] = ["src/commands/schema/schema.json", "../THIRD-PARTY-LICENSES.txt"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    for path in PRINTED.map(Path::new) {
        println!("cargo::rerun-if-changed={}", path.display());
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut packed = File::create(Path::new(&out).join(path.file_name().unwrap_or_default()))?;
        io::copy(&mut GzEncoder::new(file, Compression::best()), &mut packed)?;
    }
    Ok(())
}
