//! Arguments that several commands share.

use std::{
    ffi::OsString,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use clap::{Args as _, FromArgMatches as _, builder::RangedI64ValueParser};
use gpumon_probe::{
    allocation::SLURM_GPUS,
    derive::ConditionSettings,
    model::Record,
    owner::CommandLines,
    sampler::{self, Options, SharedInterval},
    units::Accepted,
    vendor::{BadSource, KERNEL_LOG, Roots, Source, SourceChoice, SourceError},
};
use gpumon_server::frame::INTERVAL_MS;

use crate::config::{self, Refusal};

/// Returns the parser for a sampling interval in milliseconds.
pub(crate) fn parse_interval() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(*INTERVAL_MS.start())..=i64::from(*INTERVAL_MS.end()))
}

/// The source of readings; the same for every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SourceArgs {
    #[arg(
        long,
        global = true,
        help = SourceChoice::HELP,
        env = SOURCE,
        default_value = "auto",
        value_name = "SOURCE",
        value_parser = parse_source,
        display_order = 900
    )]
    pub(crate) source: SourceChoice,

    /// Path of the NVML library, if the loader does not find libnvidia-ml.so.1
    #[arg(long, global = true, env = NVML_LIB, value_name = "PATH", display_order = 901)]
    pub(crate) nvml_lib: Option<OsString>,

    /// Settings file to read instead of /etc/gpumon/config.toml and
    /// `$XDG_CONFIG_HOME/gpumon/config.toml`; `none` reads none
    #[arg(long, global = true, env = CONFIG, value_name = "FILE", display_order = 903)]
    pub(crate) config: Option<PathBuf>,

    /// Read the GPUs directly, even if a gpumon server is running
    #[arg(long, global = true, display_order = 902)]
    pub(crate) no_daemon: bool,
}

const SOURCE: &str = "GPUMON_SOURCE";
const NVML_LIB: &str = "GPUMON_NVML_LIB";
const CONFIG: &str = "GPUMON_CONFIG";
const PROCFS: &str = "GPUMON_PROCFS";
const SYSFS: &str = "GPUMON_SYSFS";
/// The options of [`SourceArgs`] that take a value, followed by those that do not.
const WITH_VALUE: [&str; 3] = ["--source", "--nvml-lib", "--config"];
const ALONE: [&str; 1] = ["--no-daemon"];

impl SourceArgs {
    /// Splits the arguments into those that select the source of readings and the rest, and keeps
    /// their order.
    pub(crate) fn told_apart(words: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
        let (mut own, mut rest) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            let name = text.split_once('=').map_or(&*text, |(name, _)| name);
            if WITH_VALUE.contains(&name) {
                own.push(word.clone());
                own.extend((name == text).then(|| words.next().cloned()).flatten());
            } else if ALONE.contains(&&*text) {
                own.push(word.clone());
            } else {
                rest.push(word.clone());
            }
        }
        (own, rest)
    }

    /// Parses these arguments for a command line that otherwise belongs to nvidia-smi. Without
    /// arguments and settings files, only environment variables are read, which is faster than
    /// building a command line.
    pub(crate) fn from_words(words: &[OsString]) -> Result<Self, Refusal> {
        let source = std::env::var(SOURCE).unwrap_or_default();
        let config = std::env::var_os(CONFIG).map(PathBuf::from);
        if words.is_empty()
            && config::is_without_files(config.as_deref())
            && let Ok(source) = parse_source(&source)
        {
            return Ok(Self {
                source,
                nvml_lib: std::env::var_os(NVML_LIB),
                config,
                no_daemon: false,
            });
        }
        let command = Self::augment_args(clap::Command::new("gpumon").disable_help_flag(true));
        let words: Vec<OsString> = [&["gpumon".into()], words].concat();
        let resolved = config::resolve(&command, &words)?;
        Self::from_arg_matches(&resolved.matches).map_err(Refusal::Arguments)
    }

    pub(crate) fn open(&self) -> Result<Arc<dyn Source>, SourceError> {
        self.source.open(&self.roots())
    }

    /// Opens the source, using the procfs and sysfs directories of the sampler.
    pub(crate) fn open_for(&self, sampling: &SamplingArgs) -> Result<Arc<dyn Source>, SourceError> {
        self.source.open(&Roots {
            sys: sampling.sysfs.clone(),
            proc: sampling.procfs.clone(),
            ..self.roots()
        })
    }

    /// Returns the directories in which drivers are found.
    pub(crate) fn roots(&self) -> Roots {
        let usual = Roots::default();
        Roots {
            nvml_lib: self.library(),
            sys: root_in_environment(SYSFS, usual.sys),
            proc: root_in_environment(PROCFS, usual.proc),
        }
    }

    /// Returns a channel of records with details, or of the error that prevents reading. A detached
    /// thread reads them, because a hung driver never returns.
    pub(crate) fn records(&self, commands: CommandLines) -> Receiver<Result<Record, SourceError>> {
        let (sender, records) = mpsc::channel();
        let source = self.clone();
        thread::spawn(move || {
            let options = Options {
                details: true,
                ..options_in_environment(Duration::from_millis(250), commands)
            };
            let send = |record: &Record| match sender.send(Ok(record.clone())) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            if let Err(error) = source
                .open()
                .and_then(|source| sampler::run(&source, &options, send))
            {
                // If the receiver is gone, nobody needs the error.
                let _ = sender.send(Err(error));
            }
        });
        records
    }

    /// Returns the arguments that select the same source in another gpumon process.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        // All settings are passed as arguments, so that a change of a file has no effect.
        let mut arguments: Vec<OsString> =
            ["--config", "none", "--source"].map(OsString::from).into();
        arguments.push(self.source.to_string().into());
        if let Some(library) = self.library() {
            arguments.extend(["--nvml-lib".into(), library]);
        }
        arguments
    }

    pub(crate) fn is_simulated(&self) -> bool {
        matches!(
            self.source,
            SourceChoice::Sim(_) | SourceChoice::SimScenario(_)
        )
    }

    /// Returns `true` if the arguments of this command select a source, so that a server must not
    /// be used.
    pub(crate) fn is_read_here(&self) -> bool {
        if self.no_daemon {
            return true;
        }
        self.is_simulated()
            || self.nvml_lib.is_some() && self.nvml_lib != config::for_all(NVML_LIB, "nvml-lib")
    }

    /// Returns the NVML library that was named; `None` for an empty variable. A file in the current
    /// directory becomes an absolute path, because the loader does not search this directory.
    pub(crate) fn library(&self) -> Option<OsString> {
        let named = self.nvml_lib.as_ref().filter(|name| !name.is_empty())?;
        let here = std::path::absolute(named)
            .ok()
            .filter(|path| path.is_file());
        Some(here.map_or_else(|| named.clone(), Into::into))
    }
}

/// Parses a source. An empty text, as from an empty variable, means the default.
fn parse_source(text: &str) -> Result<SourceChoice, BadSource> {
    if text.is_empty() {
        Ok(SourceChoice::Auto)
    } else {
        text.parse()
    }
}

/// Returns the options for a live view: all readings, details and events.
pub(crate) fn watching(interval: Arc<SharedInterval>) -> Options {
    Options {
        interval,
        details: true,
        events: true,
        kernel_log: Some(KERNEL_LOG.into()),
        slurm_gpus: Some(SLURM_GPUS.into()),
        ..options_in_environment(Duration::from_secs(1), CommandLines::All)
    }
}

/// Returns the options for a command without sampling arguments. The environment may set the
/// directories of procfs and sysfs.
pub(crate) fn options_in_environment(interval: Duration, commands: CommandLines) -> Options {
    let options = Options::new(interval, commands);
    Options {
        proc_root: root_in_environment(PROCFS, options.proc_root.clone()),
        sys_root: root_in_environment(SYSFS, options.sys_root.clone()),
        ..options
    }
}

fn root_in_environment(variable: &str, usual: PathBuf) -> PathBuf {
    let set = std::env::var_os(variable).filter(|root| !root.is_empty());
    set.map_or(usual, PathBuf::from)
}

/// The sampling options; the same for every command that takes more than one sample.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SamplingArgs {
    /// Sampling interval in milliseconds, 100 to 60000
    #[arg(
        long,
        env = "GPUMON_INTERVAL_MS",
        default_value_t = 1000,
        value_name = "MS",
        value_parser = parse_interval()
    )]
    pub(crate) interval_ms: u32,

    /// Report held memory as idle after this time without GPU activity, for example 30s, 5m or 2h
    #[arg(long, env = "GPUMON_HELD_IDLE_AFTER", default_value = "5m", value_name = "TIME", value_parser = parse_time)]
    held_idle_after: Duration,

    /// Kernel log to read driver errors (Xid) from; in a container, its mount point
    #[arg(long, env = "GPUMON_KERNEL_LOG", default_value = KERNEL_LOG, value_name = "PATH")]
    kernel_log: PathBuf,

    /// procfs to read processes from; in a container, the mount point of the host's /proc
    #[arg(
        long,
        env = PROCFS,
        default_value = "/proc",
        value_name = "PATH"
    )]
    procfs: PathBuf,

    /// Directory in which Slurm's prolog writes a file `UUID` with `JOB_ID UID` for each GPU of a
    /// job, like that of jobstats
    #[arg(long, env = "GPUMON_SLURM_GPUS", default_value = SLURM_GPUS, value_name = "DIR")]
    slurm_gpus: PathBuf,

    /// sysfs to read GPUs other than NVIDIA's and the power state of a laptop GPU from
    #[arg(
        long,
        env = SYSFS,
        default_value = "/sys",
        value_name = "PATH"
    )]
    sysfs: PathBuf,
}

impl SamplingArgs {
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.interval_ms))
    }

    /// Returns the settings for detecting conditions.
    pub(crate) fn conditions(&self) -> ConditionSettings {
        ConditionSettings {
            held_idle_after_ms: self.held_idle_after.as_millis() as u64,
        }
    }

    pub(crate) fn procfs(&self) -> &Path {
        &self.procfs
    }

    /// Returns the options of a sampler that reads all that a GPU reports.
    pub(crate) fn options(&self, commands: CommandLines) -> Options {
        Options {
            proc_root: self.procfs.clone(),
            sys_root: self.sysfs.clone(),
            kernel_log: Some(self.kernel_log.clone()),
            slurm_gpus: Some(self.slurm_gpus.clone()),
            details: true,
            events: true,
            conditions: self.conditions(),
            ..Options::new(self.interval(), commands)
        }
    }

    /// Returns the arguments that select the same options in another gpumon process.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        vec![
            "--interval-ms".into(),
            self.interval_ms.to_string().into(),
            "--held-idle-after".into(),
            format!("{}ms", self.held_idle_after.as_millis()).into(),
            "--kernel-log".into(),
            self.kernel_log.clone().into(),
            "--procfs".into(),
            self.procfs.clone().into(),
            "--slurm-gpus".into(),
            self.slurm_gpus.clone().into(),
            "--sysfs".into(),
            self.sysfs.clone().into(),
        ]
    }
}

/// The maximum size limit for a file or a directory, in bytes. No disk is that large.
pub(crate) const LARGEST_SIZE: u64 = 1_000_000_000_000_000 - 1;

/// The accepted values for waiting times, run times and lengths of history.
const TIME: Accepted<Duration> = Accepted::accept_durations(
    Duration::from_secs(1),
    Duration::from_hours(7 * 24),
    "a time from 1 second to 7 days, such as 30s, 10m, 2h or 1d",
);

pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    TIME.parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_read_is_told_from_what_stands_behind_it() {
        for (line, own, rest) in [
            ("-L", "", "-L"),
            ("--source sim:2 -L", "--source sim:2", "-L"),
            (
                "--source=sim smi --nvml-lib libfake.so -q",
                "--source=sim --nvml-lib libfake.so",
                "smi -q",
            ),
            (
                "-q --no-daemon -i 0 --source sim",
                "--no-daemon --source sim",
                "-q -i 0",
            ),
            ("-L --source", "--source", "-L"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (told, left) = SourceArgs::told_apart(&words);
            assert_eq!(
                (told.join(" ".as_ref()), left.join(" ".as_ref())),
                (own.into(), rest.into()),
                "{line}"
            );
        }
        let read = |words: &[&str]| {
            SourceArgs::from_words(&words.iter().map(OsString::from).collect::<Vec<_>>())
                .map(|own| own.source.to_string())
        };
        assert_eq!(
            read(&["--config", "none", "--source", "sim:2"]).unwrap(),
            "sim:2"
        );
        let refused = |words: &[&str]| match read(words) {
            Err(Refusal::Arguments(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(refused(&["--config=none", "--source"]).contains("--source"));
        assert!(refused(&["--config=none", "--source=sim:0"]).contains("64"));
    }
}
