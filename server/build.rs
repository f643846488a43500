//! Compresses the API description and the web page's files, which are then embedded in the binary.
//! The page is left out if it was not built.

use std::{
    env,
    error::Error,
    fmt::Write,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use flate2::{Compression, read::GzEncoder};

#[path = "src/content_type.rs"]
mod content_type;

const OPENAPI: &str = "src/openapi/openapi.json";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={OPENAPI}");
    compress_file(Path::new(OPENAPI), &out.join("openapi.json"))?;
    let page = Path::new("../static/dist");
    if !page.exists() && env::var_os("GPUMON_PAGE_FOLLOWS").is_some() {
        return Err("the web page has not been built yet".into());
    }
    // If `page` does not exist, its parent directory is watched instead. If a missing path were
    // watched, cargo would run this script and compile the crate in every build.
    let (watched, files) = if page.exists() {
        (page, list_files(page)?)
    } else {
        (Path::new("../static"), Vec::new())
    };
    println!("cargo::rerun-if-changed={}", watched.display());
    let mut table = String::new();
    for (number, file) in files.iter().enumerate() {
        let path = file.strip_prefix(page)?.to_str().unwrap_or_default();
        if content_type::content_type(path).is_none() {
            let cure = "add its extension to server/src/content_type.rs";
            return Err(
                format!("the content type of {} is unknown: {cure}", file.display()).into(),
            );
        }
        let packed = out.join(format!("{number}.gz"));
        compress_file(file, &packed)?;
        writeln!(
            table,
            r#"({path:?}, include_bytes!(concat!(env!("OUT_DIR"), "/{number}.gz"))),"#
        )?;
    }
    fs::write(out.join("page.rs"), format!("[{table}]"))?;
    Ok(())
}

fn compress_file(file: &Path, packed: &Path) -> Result<(), Box<dyn Error>> {
    let opened = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    io::copy(
        &mut GzEncoder::new(opened, Compression::best()),
        &mut File::create(packed)?,
    )?;
    Ok(())
}

/// Returns all files in a directory and its subdirectories in a fixed order.
fn list_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    let nested = entries.into_iter().map(|path| {
        if path.is_dir() {
            list_files(&path)
        } else {
            Ok(vec![path])
        }
    });
    Ok(nested.collect::<io::Result<Vec<_>>>()?.concat())
}
