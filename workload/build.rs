//! A build script that compresses the kernels. Uncompressed, they would be a tenth of the program's
//! size.

use std::{env, error::Error, fs, io, path::Path};

use flate2::{Compression, read::GzEncoder};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=kernels");
    let out = env::var("OUT_DIR")?;
    for entry in fs::read_dir("kernels")? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "ptx" || extension == "cubin")
        {
            let mut packed =
                fs::File::create(Path::new(&out).join(path.file_name().unwrap_or_default()))?;
            io::copy(
                &mut GzEncoder::new(fs::File::open(&path)?, Compression::best()),
                &mut packed,
            )?;
        }
    }
    Ok(())
}
