//! Build script that compresses the license texts that `gpumon licenses` prints.

use std::{env, error::Error, fs::File, io, path::Path};

use flate2::{Compression, read::GzEncoder};

const LICENSES: &str = "../THIRD-PARTY-LICENSES.txt";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={LICENSES}");
    let file = File::open(LICENSES).map_err(|error| format!("{LICENSES}: {error}"))?;
    let packed = Path::new(&env::var("OUT_DIR")?).join("THIRD-PARTY-LICENSES.txt");
    io::copy(
        &mut GzEncoder::new(file, Compression::best()),
        &mut File::create(packed)?,
    )?;
    Ok(())
}
