//! `gpumon doctor --bundle`: what a bug report needs, in one archive, without what identifies anybody.
//!
//! - [`versions`], [`environment`], [`kernel_messages`] and [`system_files`] are read here;
//!   findings, sample and server come from outside.
//! - [`scrub`] replaces names, [`archive`] writes.

mod archive;
mod environment;
mod kernel_messages;
mod scrub;
mod system_files;
mod versions;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use gpumon_probe::{local_time, model::now_ms, units::byte_size};
use serde_json::{Value, json};

use self::scrub::Scrubber;
use super::{machine::Machine, report::Report, server::Response};
use crate::{
    commands::show, driver::Driver, exit::Failure, json_text::NameKind, local::NoServer,
    terminal::style::plain,
};

#[derive(Debug, clap::Args)]
pub(super) struct BundleArgs {
    /// Write an archive for a bug report: versions, findings, a sample, the server's state,
    /// messages of the drivers, and the files from which GPUs other than NVIDIA's are read. Names,
    /// IDs, paths and addresses are replaced; the default file is gpumon-bundle-DATE.tar.gz
    #[arg(long, value_name = "FILE", conflicts_with = "json", value_hint = clap::ValueHint::FilePath)]
    // So it has a value, none, or is not there.
    #[allow(clippy::option_option)]
    bundle: Option<Option<PathBuf>>,

    /// With --bundle, write without confirmation
    #[arg(long, requires = "bundle")]
    yes: bool,
}

/// One file of the archive.
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

/// What is known of the machine.
pub(super) struct Collected<'a> {
    pub(super) machine: &'a Machine,
    pub(super) driver: &'a Driver,
    pub(super) server: &'a Result<Response, NoServer>,
    pub(super) report: Report,
    /// Those that were typed, and those of settings files.
    pub(super) paths: Vec<PathBuf>,
    /// What settings files set, without what somebody made up.
    pub(super) settings: Option<String>,
}

impl BundleArgs {
    /// Where to write, if that is wanted and possible.
    pub(super) fn file(&self) -> Result<Option<PathBuf>, Failure> {
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
            return Err(Failure::usage(anyhow!(
                "{path} exists already: remove it, or name another with --bundle FILE"
            )));
        }
        Ok(Some(path))
    }

    /// Says what goes into the archive, and writes it if that is confirmed.
    pub(super) fn write(&self, path: &Path, collected: Collected<'_>) -> Result<(), Failure> {
        let (files, counts) = files(collected, &environment::read());
        let archive = archive::pack(&files, now_ms() / 1000)?;
        let mut out = io::stdout().lock();
        // Where nobody reads on, nothing is written, and that is no success.
        let listed = out.write_all(list(path, &files, &counts).as_bytes());
        listed.map_err(|error| {
            anyhow!("nothing written, since its contents cannot be listed: {error}")
        })?;
        if !self.yes {
            if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
                let why = "nothing written, since there is no terminal to confirm it on: add --yes";
                return Err(Failure::usage(anyhow!(why)));
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
        archive::write(path, &archive)
            .with_context(|| format!("cannot write {name}; name another with --bundle FILE"))?;
        writeln!(
            out,
            "\nWrote {name} ({}). Read it before you share it: tar -xzOf {name} | less",
            byte_size(archive.len() as f64)
        )?;
        Ok(())
    }
}

/// The files, without what identifies anybody, and how much of that there was.
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
    let messages = kernel_messages::read(machine).unwrap_or_else(|why| vec![why]);
    for message in &messages {
        scrubber.learn_from(message);
    }
    let system_files = system_files::read(machine, &mut scrubber);
    let mut objects = [
        versions::versions(machine, driver, environment),
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

/// As `gpumon --json` has it, or why there is none.
fn sample(driver: &Driver) -> Value {
    match driver {
        Driver::Refused(error) => json!({ "error": error.to_string() }),
        Driver::Silent => json!({ "error": "the driver has not responded within 10 s" }),
        Driver::Answers(answer) => answer.sample.clone().map_or_else(
            || json!({ "error": "no sample within 4 s" }),
            |sample| {
                json!(show::frame(
                    answer.inventory.clone(),
                    sample,
                    answer.details.values().cloned().collect()
                ))
            },
        ),
    }
}

/// What the running server says of itself, or why it does not.
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
    // A folder has hundreds of small files.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::{Args as _, FromArgMatches as _};

    use super::{
        super::{finding::Finding, readings::Readings, server},
        *,
    };
    use crate::local::ServerArgs;

    #[test]
    fn findings_log_and_environment_name_nobody_and_agree() {
        let root = tempfile::tempdir().unwrap();
        for (folder, name, text) in [
            (
                "etc",
                "passwd",
                "root:x:0:0::/root:\nzoe:x:1001:1001:Zoe:/home/zoe:\npostgres:x:105:5::/var:\n",
            ),
            (
                "dev",
                "kmsg",
                "4,1,10,-;NVRM: GPU at PCI:0000:3b:00: GPU-3647F3A1-f2a2-89c1-304c-bc9ec80f4180\n\
                 4,2,20,-;NVRM: GPU Board Serial Number: 1659978082255\n\
                 4,3,30,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=my, secret, Ch 00000008\n\
                 4,4,40,-;NVRM: API mismatch: the client 'my_secret' (pid 1005)\n\
                 4,5,50,-;NVRM: zoe's postgres from 10.1.2.3\n",
            ),
        ] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join(name), text).unwrap();
        }
        let environment = [
            (
                "CUDA_VISIBLE_DEVICES",
                "GPU-3647f3a1-f2a2-89c1-304c-bc9ec80f4180",
            ),
            ("NVIDIA_API_KEY", "hunter2"),
            ("SECRET", "hunter3"),
        ];
        let environment = environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let nowhere = ServerArgs::augment_args(clap::Command::new("x"))
            .get_matches_from(["x", "--control=/home/x"]);
        let finding = Finding::problem(
            "library",
            "no /home/zoe/lib.so\tof \u{1b}[31mzoe",
            "ask my, secret",
        );
        let collected = Collected {
            machine: &Machine::below(root.path()),
            driver: &Driver::Silent,
            server: &server::ask(&ServerArgs::from_arg_matches(&nowhere).unwrap()),
            report: Report::new(vec![finding], Readings::default()),
            paths: Vec::new(),
            settings: Some("top.theme = \"light\"\n".to_owned()),
        };
        let (files, counts) = files(collected, &environment);
        let text = |file: &File| match &file.content {
            Content::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Content::Link(target) => target.display().to_string(),
        };
        let file = |name| text(files.iter().find(|file| file.name == name).unwrap());
        assert_eq!(
            file("kernel-log.txt"),
            "10 NVRM: GPU at PCI:0000:3b:00: GPU-id-1\n20 NVRM: GPU Board Serial Number: serial-1\n\
             30 NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=program-1, Ch 00000008\n\
             40 NVRM: API mismatch: the client 'program-2' (pid 1005)\n\
             50 NVRM: user-1's postgres from address-1\n"
        );
        assert_eq!(
            file("environment.txt"),
            "CUDA_VISIBLE_DEVICES=GPU-id-1\nNVIDIA_API_KEY is set\n"
        );
        assert!(
            file("doctor.txt").contains("no path-2of  user-1"),
            "{}",
            file("doctor.txt")
        );
        assert!(file("config.toml").contains("light"));
        assert!(file("doctor.json").contains("ask program-1"));
        assert!(file("server.json").contains("path-1") && file("sample.json").contains("10 s"));
        assert_eq!(counts[&NameKind::Id], 1);
        let secrets = [
            "zoe",
            "secret",
            "hunter",
            "3647f3a1",
            "1659978082255",
            "10.1.2.3",
            "/home",
        ];
        for (file, secret) in files
            .iter()
            .flat_map(|file| secrets.map(|secret| (file, secret)))
        {
            let (name, text) = (&file.name, text(file));
            assert!(
                !text.to_lowercase().contains(secret),
                "{secret} is in {name}: {text}"
            );
        }
    }
}
