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
    units::format_byte_size,
    vendor::{FileContent, FilePart, KERNEL_LOG, collect_card_files, read_kernel_messages},
};
use serde_json::{Value, json};

use self::scrub::Scrubber;
use super::{machine::Machine, report::Report, runtime::ServerResponse};
use crate::{
    exit::{Failure, Result, usage},
    json_text::NameKind,
    local_server::NoServerError,
    snapshot::{DriverState, Snapshot},
    terminal::line::strip_styles,
};

#[derive(Debug, clap::Args)]
pub(super) struct BundleArgs {
    /// Write an archive for a bug report: versions, findings, a sample, the server's state,
    /// messages of the drivers, and the files from which GPUs other than NVIDIA's are read. Names,
    /// IDs, paths and addresses are replaced; the default file is gpumon-bundle-DATE.tar.gz
    #[arg(
        long, value_name = "FILE", conflicts_with = "json", value_hint = clap::ValueHint::FilePath
    )]
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

/// Data that the caller has collected for the bundle.
pub(super) struct CollectedData<'a> {
    pub(super) machine: &'a Machine,
    pub(super) driver: &'a DriverState,
    pub(super) server: &'a Result<ServerResponse, NoServerError>,
    pub(super) report: Report,
    /// Paths that the user typed, and paths of settings files.
    pub(super) paths: Vec<PathBuf>,
    /// The settings in the files, without free-form text.
    pub(super) settings: Option<String>,
}

impl BundleArgs {
    /// Returns the path of the archive, or `None` if no archive was requested.
    ///
    /// # Errors
    /// Returns an error if the file already exists.
    pub(super) fn archive_path(&self) -> Result<Option<PathBuf>> {
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
                "{path} already exists: remove it, or choose another file with --bundle FILE"
            ));
        }
        Ok(Some(path))
    }

    /// Lists the contents of the archive, and writes it if the user confirms.
    pub(super) fn confirm_and_write(&self, path: &Path, collected: CollectedData<'_>) -> Result {
        let (files, counts) = build_files(collected, &environment::read_environment_variables());
        let archive = pack_archive(&files, now_ms() / 1000)?;
        let mut out = io::stdout().lock();
        // If the list of contents cannot be printed, the user could not check it, so no archive is
        // written.
        let listed = out.write_all(format_contents(path, &files, &counts).as_bytes());
        listed.map_err(|error| {
            anyhow!("the bundle was not written, because its contents cannot be listed: {error}")
        })?;
        if !self.yes {
            if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
                let why = "the bundle was not written, because there is no terminal for the \
                 confirmation prompt: add --yes to skip the prompt";
                return Err(usage!(why));
            }
            write!(out, "\nWrite it? [y/N] ")?;
            out.flush()?;
            let mut answer = String::new();
            io::stdin().read_line(&mut answer)?;
            if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
                writeln!(out, "Nothing written.")?;
                return Err(Failure::from_printed_error(1));
            }
        }
        let name = path.display();
        write_archive(path, &archive).with_context(|| {
            format!("cannot write {name}; choose another file with --bundle FILE")
        })?;
        writeln!(
            out,
            "\nWrote {name} ({}). Read it before you share it: tar -xzOf {name} | less",
            format_byte_size(archive.len() as f64)
        )?;
        Ok(())
    }
}

/// Returns the archive's files with all names replaced, and the number of replaced names by kind.
fn build_files(
    collected: CollectedData<'_>,
    environment: &BTreeMap<String, String>,
) -> (Vec<File>, BTreeMap<NameKind, usize>) {
    let CollectedData {
        machine,
        driver,
        server,
        report,
        paths,
        settings,
    } = collected;
    let mut scrubber = Scrubber::default();
    environment::add_environment_names_to_scrubber(&mut scrubber, machine, environment, &paths);
    let messages = read_gpu_messages(machine).unwrap_or_else(|why| vec![why]);
    for message in &messages {
        scrubber.add_names_in_message(message);
    }
    let system_files = read_system_files(machine, &mut scrubber);
    let mut objects = [
        environment::collect_versions(machine, driver, environment),
        sample_to_json(driver),
        server_state_to_json(server),
    ];
    scrubber.scrub_json(&mut objects);
    let [versions, sample, server] = objects.map(|object| format!("{object:#}\n"));
    let report = report.map_texts(|text| scrubber.scrub_text(text));
    let mut lines = |lines: Vec<String>| {
        lines
            .iter()
            .map(|line| scrubber.scrub_text(line) + "\n")
            .collect::<String>()
    };
    let mut files = vec![
        File::with_text("doctor.txt", strip_styles(&report.to_text())),
        File::with_text("doctor.json", format!("{:#}\n", json!(report))),
        File::with_text("versions.json", versions),
        File::with_text("sample.json", sample),
        File::with_text("server.json", server),
        File::with_text("kernel-log.txt", lines(messages)),
        File::with_text(
            "environment.txt",
            lines(environment::format_relevant_variables(environment)),
        ),
    ];
    files.extend(settings.map(|text| File::with_text("config.toml", text)));
    files.extend(system_files);
    (files, scrubber.count_replaced_names())
}

/// Returns the sample in the format of `gpumon --json`, or the reason why it is missing.
fn sample_to_json(driver: &DriverState) -> Value {
    match driver {
        DriverState::Refused(error) => json!({ "error": error.to_string() }),
        DriverState::Silent => json!({ "error": "the driver has not responded within 10 s" }),
        DriverState::Answers(answer) => answer.sample.clone().map_or_else(
            || json!({ "error": "no sample arrived within 4 s" }),
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

/// Returns the server's internal state, or the reason why it is missing.
fn server_state_to_json(server: &Result<ServerResponse, NoServerError>) -> Value {
    match server {
        Ok(ServerResponse {
            socket,
            snapshot: Ok(snapshot),
            ..
        }) => json!({ "socket": socket, "snapshot": snapshot }),
        Ok(ServerResponse {
            socket,
            snapshot: Err(error),
            ..
        }) => json!({ "socket": socket, "error": error }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn format_contents(path: &Path, files: &[File], counts: &BTreeMap<NameKind, usize>) -> String {
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
                let _ = writeln!(
                    list,
                    "  {:16} {:>9}",
                    file.name,
                    format_byte_size(size as f64)
                );
            }
        }
    }
    for (folder, (count, size)) in folders {
        let size = format_byte_size(size as f64);
        let _ = writeln!(
            list,
            "  {:16} {size:>9}  {count} files",
            format!("{folder}/")
        );
    }
    list += "Values replaced in these files:\n";
    for (kind, count) in counts {
        let _ = writeln!(list, "  {:16} {count:>9}", scrub::name_kind_labels(*kind).1);
    }
    list
}

/// The top directory inside the archive. The archive's own file name is not used, because it may
/// contain a user's name.
const ARCHIVE_DIR: &str = "gpumon-bundle";

/// Returns the files as a gzip-compressed tar archive.
fn pack_archive(files: &[File], at_s: u64) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_mtime(at_s);
        let name = format!("{ARCHIVE_DIR}/{}", file.name);
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

/// Writes `bytes` to a new file. An existing file is not replaced.
fn write_archive(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // The temporary file has mode 0600 and is removed if a later step fails.
    let mut file = tempfile::Builder::new()
        .prefix(".gpumon-bundle-")
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}

/// The maximum number of kernel messages in the archive.
const MAX_MESSAGES: usize = 300;

/// Returns the newest kernel messages of GPU drivers with their times in microseconds since boot,
/// or the reason why there are none.
fn read_gpu_messages(machine: &Machine) -> Result<Vec<String>, String> {
    let messages = read_kernel_messages(&machine.resolve_path(KERNEL_LOG));
    let messages = messages.map_err(|error| format!("{KERNEL_LOG} cannot be read: {error}"))?;
    if messages.is_empty() {
        return Err("the kernel log has no messages from GPU drivers".to_owned());
    }
    Ok(messages[messages.len().saturating_sub(MAX_MESSAGES)..].to_vec())
}

/// Returns copies of the files from which gpumon reads GPUs of other vendors than NVIDIA. IDs and
/// serial numbers are replaced.
fn read_system_files(machine: &Machine, scrubber: &mut Scrubber) -> Vec<File> {
    let files = collect_card_files(machine.roots()).into_iter();
    let copy = files.filter_map(|file| {
        let content = match file.content {
            FileContent::Link(target) => Content::Link(target),
            FileContent::Parts(parts) => {
                let bytes = parts.into_iter().flat_map(|part| match part {
                    FilePart::Plain(bytes) => bytes,
                    FilePart::Id(id) => replace_name(scrubber, NameKind::Id, &id),
                    FilePart::Serial(serial) => replace_name(scrubber, NameKind::Serial, &serial),
                });
                Content::Bytes(bytes.collect())
            }
        };
        let name = file.path.to_str()?.to_owned();
        Some(File { name, content })
    });
    copy.collect()
}

/// Returns the placeholder for a name, and makes the scrubber replace the name in all other files.
fn replace_name(scrubber: &mut Scrubber, kind: NameKind, name: &str) -> Vec<u8> {
    scrubber.add_name(kind, name);
    scrubber.assign_placeholder(kind, name).into_bytes()
}

#[cfg(test)]
mod tests;
