//! `gpumon doctor --bundle`: writes an archive for a bug report, without names of people or
//! machines.
//!
//! The caller provides the findings, the sample and the server's state. This module reads versions,
//! the [`environment`], kernel messages and files of drivers, and [`scrub`] replaces names.

mod environment;
mod scrub;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use flate2::{Compression, write::GzEncoder};
use gpumon_probe::{
    local_time,
    model::now_ms,
    units::byte_size,
    vendor::{FileContent, FilePart, KERNEL_LOG, kernel_messages, record_files},
};
use serde_json::{Value, json};

use self::scrub::Scrubber;
use super::{machine::Machine, report::Report, state::Response};
use crate::{
    driver::Driver,
    exit::{Failure, Result, usage},
    json_text::NameKind,
    local::NoServer,
    snapshot::Snapshot,
    terminal::style::plain,
};

#[derive(Debug, clap::Args)]
pub(super) struct BundleArgs {
    /// Write an archive for a bug report: versions, findings, a sample, the server's state,
    /// messages of the drivers, and the files from which GPUs other than NVIDIA's are read. Names,
    /// IDs, paths and addresses are replaced; the default file is gpumon-bundle-DATE.tar.gz
    #[arg(long, value_name = "FILE", conflicts_with = "json", value_hint = clap::ValueHint::FilePath)]
    // The option can be absent, present without a value, or present with a value.
    #[allow(clippy::option_option)]
    bundle: Option<Option<PathBuf>>,

    /// With --bundle, write the archive without confirmation
    #[arg(long, requires = "bundle")]
    yes: bool,
}

/// A file in the archive.
struct File {
    /// The path in the archive.
    name: String,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    /// The target of a symbolic link.
    Link(PathBuf),
}

impl File {
    fn with_text(name: &str, text: String) -> Self {
        Self {
            name: name.to_owned(),
            content: Content::Bytes(text.into_bytes()),
        }
    }

    fn size(&self) -> usize {
        match &self.content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Link(_) => 0,
        }
    }
}

/// Data that was collected for the bundle.
pub(super) struct Collected<'a> {
    pub(super) machine: &'a Machine,
    pub(super) driver: &'a Driver,
    pub(super) server: &'a Result<Response, NoServer>,
    pub(super) report: Report,
    /// Paths that the user typed, and paths of settings files.
    pub(super) paths: Vec<PathBuf>,
    /// The settings of files, without free texts.
    pub(super) settings: Option<String>,
}

impl BundleArgs {
    /// Returns the path of the archive, if one was requested.
    ///
    /// # Errors
    /// Returns an error if the file exists already.
    pub(super) fn file(&self) -> Result<Option<PathBuf>> {
        let Some(named) = self.bundle.clone() else {
            return Ok(None);
        };
        let usual = || {
            format!(
                "gpumon-bundle-{}.tar.gz",
                local_time::now().strftime("%Y-%m-%d")
            )
            .into()
        };
        let path = named.unwrap_or_else(usual);
        if path.symlink_metadata().is_ok() {
            let path = path.display();
            return Err(usage!(
                "{path} exists already: remove it, or name another with --bundle FILE"
            ));
        }
        Ok(Some(path))
    }

    /// Lists the contents of the archive, and writes it if the user confirms.
    pub(super) fn write(&self, path: &Path, collected: Collected<'_>) -> Result {
        let (files, counts) = files(collected, &environment::read());
        let archive = pack_archive(&files, now_ms() / 1000)?;
        let mut out = io::stdout().lock();
        // If the contents cannot be printed, the user could not check them, so nothing is written.
        let listed = out.write_all(list(path, &files, &counts).as_bytes());
        listed.map_err(|error| {
            anyhow!("nothing written, since its contents cannot be listed: {error}")
        })?;
        if !self.yes {
            if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
                let why = "nothing written, since there is no terminal to confirm it on: add --yes";
                return Err(usage!(why));
            }
            write!(out, "\nWrite it? [y/N] ")?;
            out.flush()?;
            let mut answer = String::new();
            io::stdin().read_line(&mut answer)?;
            if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
                writeln!(out, "Nothing written.")?;
                return Err(Failure::reported(1));
            }
        }
        let name = path.display();
        write_archive(path, &archive)
            .with_context(|| format!("cannot write {name}; name another with --bundle FILE"))?;
        writeln!(
            out,
            "\nWrote {name} ({}). Read it before you share it: tar -xzOf {name} | less",
            byte_size(archive.len() as f64)
        )?;
        Ok(())
    }
}

/// Returns the files with all names replaced, and the number of replaced names of each kind.
fn files(
    collected: Collected<'_>,
    environment: &BTreeMap<String, String>,
) -> (Vec<File>, BTreeMap<NameKind, usize>) {
    let Collected {
        machine,
        driver,
        server,
        report,
        paths,
        settings,
    } = collected;
    let mut scrubber = Scrubber::default();
    environment::learn(&mut scrubber, machine, environment, &paths);
    let messages = read_kernel_messages(machine).unwrap_or_else(|why| vec![why]);
    for message in &messages {
        scrubber.learn_from(message);
    }
    let system_files = read_system_files(machine, &mut scrubber);
    let mut objects = [
        environment::collect_versions(machine, driver, environment),
        sample(driver),
        state(server),
    ];
    scrubber.scrub_json(&mut objects);
    let [versions, sample, server] = objects.map(|object| format!("{object:#}\n"));
    let report = report.map_texts(|text| scrubber.text(text));
    let mut lines = |lines: Vec<String>| {
        lines
            .iter()
            .map(|line| scrubber.text(line) + "\n")
            .collect::<String>()
    };
    let mut files = vec![
        File::with_text("doctor.txt", plain(&report.text())),
        File::with_text("doctor.json", format!("{:#}\n", json!(report))),
        File::with_text("versions.json", versions),
        File::with_text("sample.json", sample),
        File::with_text("server.json", server),
        File::with_text("kernel-log.txt", lines(messages)),
        File::with_text("environment.txt", lines(environment::reported(environment))),
    ];
    files.extend(settings.map(|text| File::with_text("config.toml", text)));
    files.extend(system_files);
    (files, scrubber.counts())
}

/// Returns the sample as `gpumon --json` prints it, or the reason why it is missing.
fn sample(driver: &Driver) -> Value {
    match driver {
        Driver::Refused(error) => json!({ "error": error.to_string() }),
        Driver::Silent => json!({ "error": "the driver has not responded within 10 s" }),
        Driver::Answers(answer) => answer.sample.clone().map_or_else(
            || json!({ "error": "no sample within 4 s" }),
            |sample| {
                json!(
                    Snapshot::from_reading(
                        answer.inventory.clone(),
                        sample,
                        answer.details.values().cloned().collect()
                    )
                    .into_frame()
                )
            },
        ),
    }
}

/// Returns the server's own state, or the reason why it is missing.
fn state(server: &Result<Response, NoServer>) -> Value {
    match server {
        Ok(Response {
            socket,
            snapshot: Ok(snapshot),
            ..
        }) => json!({ "socket": socket, "snapshot": snapshot }),
        Ok(Response {
            socket,
            snapshot: Err(error),
            ..
        }) => json!({ "socket": socket, "error": error }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn list(path: &Path, files: &[File], counts: &BTreeMap<NameKind, usize>) -> String {
    let mut list = format!("Contents of {}:\n", path.display());
    // A directory may have hundreds of small files, so only their number and total size are listed.
    let mut folders: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in files {
        let size = file.size();
        match file.name.split_once('/') {
            Some((folder, _)) => {
                let (count, sum) = folders.entry(folder).or_default();
                (*count, *sum) = (*count + 1, *sum + size);
            }
            None => {
                let _ = writeln!(list, "  {:16} {:>9}", file.name, byte_size(size as f64));
            }
        }
    }
    for (folder, (count, size)) in folders {
        let size = byte_size(size as f64);
        let _ = writeln!(
            list,
            "  {:16} {size:>9}  {count} files",
            format!("{folder}/")
        );
    }
    list += "Replaced in them:\n";
    for (kind, count) in counts {
        let _ = writeln!(list, "  {:16} {count:>9}", scrub::label_kind(*kind).1);
    }
    list
}

/// The directory inside the archive. It differs from the archive's name, which may contain a user's
/// name.
const FOLDER: &str = "gpumon-bundle";

/// Returns the files as a gzip-compressed tar archive.
fn pack_archive(files: &[File], at_s: u64) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_mtime(at_s);
        let name = format!("{FOLDER}/{}", file.name);
        match &file.content {
            Content::Bytes(bytes) => {
                header.set_size(bytes.len() as u64);
                header.set_mode(0o644);
                archive.append_data(&mut header, name, bytes.as_slice())?;
            }
            Content::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                header.set_mode(0o777);
                archive.append_link(&mut header, name, target)?;
            }
        }
    }
    archive.into_inner()?.finish()
}

/// Writes a new file. An existing file is not replaced.
fn write_archive(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // The temporary file has mode 0600 and is removed if anything fails.
    let mut file = tempfile::Builder::new()
        .prefix(".gpumon-bundle-")
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}

/// The maximum number of kernel messages in the archive.
const MOST_LINES: usize = 300;

/// Returns the newest kernel messages of GPU drivers with their times in microseconds since boot,
/// or the reason why there are none.
fn read_kernel_messages(machine: &Machine) -> Result<Vec<String>, String> {
    let messages = kernel_messages(&machine.path(KERNEL_LOG));
    let messages = messages.map_err(|error| format!("{KERNEL_LOG} cannot be read: {error}"))?;
    if messages.is_empty() {
        return Err("no message of a GPU driver".to_owned());
    }
    Ok(messages[messages.len().saturating_sub(MOST_LINES)..].to_vec())
}

/// Returns the files of the drivers, with the IDs of GPUs replaced.
fn read_system_files(machine: &Machine, scrubber: &mut Scrubber) -> Vec<File> {
    let files = record_files(machine.roots()).into_iter();
    let copy = files.filter_map(|file| {
        let content = match file.content {
            FileContent::Link(target) => Content::Link(target),
            FileContent::Parts(parts) => {
                let bytes = parts.into_iter().flat_map(|part| match part {
                    FilePart::Plain(bytes) => bytes,
                    FilePart::Id(id) => replace(scrubber, NameKind::Id, &id),
                    FilePart::Serial(serial) => replace(scrubber, NameKind::Serial, &serial),
                });
                Content::Bytes(bytes.collect())
            }
        };
        let name = file.path.to_str()?.to_owned();
        Some(File { name, content })
    });
    copy.collect()
}

/// Returns the placeholder of a name, which is then also replaced in all other files.
fn replace(scrubber: &mut Scrubber, kind: NameKind, name: &str) -> Vec<u8> {
    scrubber.add_name(kind, name);
    scrubber.name(kind, name).into_bytes()
}

#[cfg(test)]
mod tests;
