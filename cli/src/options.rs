//! Options that several commands share: the source of readings, sampling, and the selection of GPUs
//! and processes.

use std::{
    collections::BTreeSet,
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

use clap::{Args as _, FromArgMatches as _, ValueEnum, builder::RangedI64ValueParser};
use gpumon_probe::{
    allocation::SLURM_GPU_FOLDER,
    derive::ConditionSettings,
    model::{Gpu, Process, ProcessKind, Record},
    owner::CommandLines,
    sampler::{self, Options, SharedInterval},
    units::AcceptedAmounts,
    vendor::{BadSource, KERNEL_LOG, Roots, Source, SourceChoice, SourceError},
};
use gpumon_server::frame::INTERVAL_LIMITS_MS;

use crate::{
    config::{self, Refusal},
    device_id::{self, GpuLookupError},
    visible_devices::VisibilityVariables,
};

/// Returns the parser for a sampling interval in milliseconds.
pub(crate) fn build_interval_parser() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32)
        .range(i64::from(*INTERVAL_LIMITS_MS.start())..=i64::from(*INTERVAL_LIMITS_MS.end()))
}

/// Returns the name of a value on the command line and in the settings file.
pub(crate) fn value_name(value: &impl ValueEnum) -> String {
    let possible = value.to_possible_value();
    possible.map_or_else(String::new, |possible| possible.get_name().to_owned())
}

/// Options for the source of readings; the same for every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SourceArgs {
    #[arg(
        long,
        global = true,
        help = SourceChoice::HELP,
        env = SOURCE_VARIABLE,
        default_value = "auto",
        value_name = "SOURCE",
        value_parser = parse_source,
        display_order = 900
    )]
    pub(crate) source: SourceChoice,

    /// Path of the NVML library, if the loader does not find libnvidia-ml.so.1
    #[arg(long, global = true, env = NVML_LIB_VARIABLE, value_name = "PATH", display_order = 901)]
    pub(crate) nvml_lib: Option<OsString>,

    /// Settings file to read instead of /etc/gpumon/config.toml and
    /// `$XDG_CONFIG_HOME/gpumon/config.toml`; `none` reads none
    #[arg(long, global = true, env = CONFIG_VARIABLE, value_name = "FILE", display_order = 903)]
    pub(crate) config: Option<PathBuf>,

    /// Read the GPUs directly, even if a gpumon server is running
    #[arg(long, global = true, display_order = 902)]
    pub(crate) no_daemon: bool,
}

const SOURCE_VARIABLE: &str = "GPUMON_SOURCE";
const NVML_LIB_VARIABLE: &str = "GPUMON_NVML_LIB";
const CONFIG_VARIABLE: &str = "GPUMON_CONFIG";
const PROCFS_VARIABLE: &str = "GPUMON_PROCFS";
const SYSFS_VARIABLE: &str = "GPUMON_SYSFS";
/// The options of [`SourceArgs`] that have a value. The constant below contains the options that
/// have no value.
const OPTIONS_WITH_VALUE: [&str; 3] = ["--source", "--nvml-lib", "--config"];
const OPTIONS_WITHOUT_VALUE: [&str; 1] = ["--no-daemon"];

impl SourceArgs {
    /// Splits the arguments into two lists: arguments that select the source of readings, and all
    /// others. Both lists keep the order of the arguments.
    pub(crate) fn split_off_source_arguments(words: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
        let (mut own, mut rest) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            let name = text.split_once('=').map_or(&*text, |(name, _)| name);
            if OPTIONS_WITH_VALUE.contains(&name) {
                own.push(word.clone());
                own.extend((name == text).then(|| words.next().cloned()).flatten());
            } else if OPTIONS_WITHOUT_VALUE.contains(&&*text) {
                own.push(word.clone());
            } else {
                rest.push(word.clone());
            }
        }
        (own, rest)
    }

    /// Parses the source arguments of a command line whose other arguments belong to nvidia-smi. If
    /// there are neither source arguments nor settings files, only environment variables are read,
    /// which is faster than building the command-line parser.
    pub(crate) fn parse_source_arguments(words: &[OsString]) -> Result<Self, Refusal> {
        let source = std::env::var(SOURCE_VARIABLE).unwrap_or_default();
        let config = std::env::var_os(CONFIG_VARIABLE).map(PathBuf::from);
        if words.is_empty()
            && config::has_no_files(config.as_deref())
            && let Ok(source) = parse_source(&source)
        {
            return Ok(Self {
                source,
                nvml_lib: std::env::var_os(NVML_LIB_VARIABLE),
                config,
                no_daemon: false,
            });
        }
        let command = Self::augment_args(clap::Command::new("gpumon").disable_help_flag(true));
        let words: Vec<OsString> = [&["gpumon".into()], words].concat();
        let resolved = config::resolve_command_line(&command, &words)?;
        Self::from_arg_matches(&resolved.matches).map_err(Refusal::Arguments)
    }

    pub(crate) fn open(&self) -> Result<Arc<dyn Source>, SourceError> {
        self.source.open(&self.roots())
    }

    /// Opens the source with the procfs and sysfs directories in the sampling options.
    pub(crate) fn open_with_sampling(
        &self,
        sampling: &SamplingArgs,
    ) -> Result<Arc<dyn Source>, SourceError> {
        self.source.open(&Roots {
            sys: sampling.sysfs.clone(),
            proc: sampling.procfs.clone(),
            ..self.roots()
        })
    }

    /// Returns the directories in which drivers are searched for, and the NVML library.
    pub(crate) fn roots(&self) -> Roots {
        let usual = Roots::default();
        Roots {
            nvml_lib: self.named_nvml_library(),
            sys: find_root_in_environment(SYSFS_VARIABLE, usual.sys),
            proc: find_root_in_environment(PROCFS_VARIABLE, usual.proc),
        }
    }

    /// Starts to read the source on a detached thread, because a call to a hung driver may never
    /// return. Returns a channel that receives records, including details, or the error that
    /// prevents reading.
    pub(crate) fn start_reading(
        &self,
        commands: CommandLines,
    ) -> Receiver<Result<Record, SourceError>> {
        let (sender, records) = mpsc::channel();
        let source = self.clone();
        thread::spawn(move || {
            let options = Options {
                details: true,
                ..read_environment_options(Duration::from_millis(250), commands)
            };
            let send = |record: &Record| match sender.send(Ok(record.clone())) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            if let Err(error) = source
                .open()
                .and_then(|source| sampler::run_sampler(&source, &options, send))
            {
                // Sending fails only if the receiver no longer exists, in which case the error is
                // not needed.
                let _ = sender.send(Err(error));
            }
        });
        records
    }

    /// Returns the arguments that select the same source in another gpumon process.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        // All settings are passed as arguments, so that a later change of a settings file has no
        // effect.
        let mut arguments: Vec<OsString> =
            ["--config", "none", "--source"].map(OsString::from).into();
        arguments.push(self.source.to_string().into());
        if let Some(library) = self.named_nvml_library() {
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

    /// Returns `true` if this command's arguments select a source. No server may be used then.
    pub(crate) fn bypasses_server(&self) -> bool {
        self.no_daemon
            || self.is_simulated()
            || self.nvml_lib.is_some()
                && self.nvml_lib != config::find_general_setting(NVML_LIB_VARIABLE, "nvml-lib")
    }

    /// Returns the NVML library that was named, or `None` if the name is empty. A file name in the
    /// current directory is converted to an absolute path, because the loader does not search this
    /// directory.
    pub(crate) fn named_nvml_library(&self) -> Option<OsString> {
        let named = self.nvml_lib.as_ref().filter(|name| !name.is_empty())?;
        let here = std::path::absolute(named)
            .ok()
            .filter(|path| path.is_file());
        Some(here.map_or_else(|| named.clone(), Into::into))
    }
}

/// Parses a source. An empty string, for example from an empty variable, means the default.
fn parse_source(text: &str) -> Result<SourceChoice, BadSource> {
    if text.is_empty() {
        Ok(SourceChoice::Auto)
    } else {
        text.parse()
    }
}

/// Returns the options for a live view: all readings, details and events.
pub(crate) fn build_live_view_options(interval: Arc<SharedInterval>) -> Options {
    Options {
        interval,
        details: true,
        events: true,
        kernel_log: Some(KERNEL_LOG.into()),
        slurm_gpus: Some(SLURM_GPU_FOLDER.into()),
        ..read_environment_options(Duration::from_secs(1), CommandLines::All)
    }
}

/// Returns sampler options for a command without sampling arguments. Environment variables may set
/// the directories of procfs and sysfs.
pub(crate) fn read_environment_options(interval: Duration, commands: CommandLines) -> Options {
    let options = Options::new(interval, commands);
    Options {
        proc_root: find_root_in_environment(PROCFS_VARIABLE, options.proc_root.clone()),
        sys_root: find_root_in_environment(SYSFS_VARIABLE, options.sys_root.clone()),
        ..options
    }
}

fn find_root_in_environment(variable: &str, usual: PathBuf) -> PathBuf {
    let set = std::env::var_os(variable).filter(|root| !root.is_empty());
    set.map_or(usual, PathBuf::from)
}

/// Sampling options; the same for every command that takes more than one sample.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SamplingArgs {
    /// Sampling interval in milliseconds, 100 to 60000
    #[arg(
        long,
        env = "GPUMON_INTERVAL_MS",
        default_value_t = 1000,
        value_name = "MS",
        value_parser = build_interval_parser()
    )]
    pub(crate) interval_ms: u32,

    /// Report held memory as idle after this time without GPU activity, for example 30s, 5m or 2h
    #[arg(
        long, env = "GPUMON_HELD_IDLE_AFTER", default_value = "5m", value_name = "TIME",
        value_parser = parse_time
    )]
    held_idle_after: Duration,

    /// Kernel log to read driver errors (Xid) from; in a container, its mount point
    #[arg(long, env = "GPUMON_KERNEL_LOG", default_value = KERNEL_LOG, value_name = "PATH")]
    kernel_log: PathBuf,

    /// procfs to read processes from; in a container, the mount point of the host's /proc
    #[arg(
        long,
        env = PROCFS_VARIABLE,
        default_value = "/proc",
        value_name = "PATH"
    )]
    procfs: PathBuf,

    /// Directory in which Slurm's prolog writes, for each GPU of a job, a file `UUID` that contains
    /// `JOB_ID UID`, as for jobstats
    #[arg(long, env = "GPUMON_SLURM_GPUS", default_value = SLURM_GPU_FOLDER, value_name = "DIR")]
    slurm_gpus: PathBuf,

    /// sysfs directory from which GPUs of vendors other than NVIDIA and the power state of a laptop
    /// GPU are read
    #[arg(
        long,
        env = SYSFS_VARIABLE,
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
    pub(crate) fn condition_settings(&self) -> ConditionSettings {
        ConditionSettings {
            held_idle_after_ms: self.held_idle_after.as_millis() as u64,
        }
    }

    pub(crate) fn procfs(&self) -> &Path {
        &self.procfs
    }

    /// Returns sampler options for reading everything that a GPU reports.
    pub(crate) fn to_options(&self, commands: CommandLines) -> Options {
        Options {
            proc_root: self.procfs.clone(),
            sys_root: self.sysfs.clone(),
            kernel_log: Some(self.kernel_log.clone()),
            slurm_gpus: Some(self.slurm_gpus.clone()),
            details: true,
            events: true,
            conditions: self.condition_settings(),
            ..Options::new(self.interval(), commands)
        }
    }

    /// Returns the arguments that select the same sampling options in another gpumon process.
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

/// The maximum size limit that users can set for a file or a directory, in bytes. No disk is that
/// large.
pub(crate) const MAX_SIZE_BYTES: u64 = 1_000_000_000_000_000 - 1;

/// The accepted values for waiting times, run times and history lengths.
const ACCEPTED_TIMES: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::from_secs(1),
    Duration::from_hours(7 * 24),
    "a time from 1 second to 7 days, such as 30s, 10m, 2h or 1d",
);

pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    ACCEPTED_TIMES.parse(text)
}

/// Options that limit a view to some GPUs; by default, all GPUs are shown.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ShownGpus {
    /// Show only these GPUs: indexes (3), indexes among the GPUs of a vendor (amd:0), UUIDs or PCI
    /// bus IDs, comma-separated
    #[arg(short = 'i', long = "id", value_name = "GPUS", value_delimiter = ',')]
    ids: Vec<String>,

    /// Show only the GPUs that `CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES`,
    /// `HIP_VISIBLE_DEVICES` or `ZE_AFFINITY_MASK` allow; without these variables, all
    #[arg(long)]
    only_visible: bool,
}

impl ShownGpus {
    /// Returns the first of these options that the user typed.
    pub(crate) fn find_typed_option(&self) -> Option<&'static str> {
        if self.ids.is_empty() {
            self.only_visible.then_some("--only-visible")
        } else {
            Some("-i")
        }
    }

    /// Returns the environment variables that limit the GPUs, or `None` if none is set or
    /// `--only-visible` is not given.
    fn read_visibility(&self) -> Option<VisibilityVariables> {
        self.only_visible
            .then(VisibilityVariables::from_environment)
            .flatten()
    }

    /// Returns the indices of the selected GPUs, or `None` if all GPUs are shown.
    ///
    /// # Errors
    /// Returns an error if a name matches no GPU, or if a number in a variable may match more than
    /// one GPU.
    pub(crate) fn find_indices(
        &self,
        gpus: &[Gpu],
    ) -> Result<Option<BTreeSet<u32>>, GpuLookupError> {
        let named = if self.ids.is_empty() {
            None
        } else {
            let find = |name: &String| device_id::find_device(name.trim(), gpus);
            let found = self.ids.iter().map(find).collect::<Result<Vec<_>, _>>()?;
            Some(found.into_iter().flatten().map(|id| id.gpu).collect())
        };
        let Some(visible) = self.read_visibility() else {
            return Ok(named);
        };
        let allowed = visible
            .list_allowed_devices(gpus)
            .map_err(GpuLookupError::new_ambiguous)?
            .into_iter()
            .map(|id| id.gpu);
        let is_named = |gpu: &u32| named.as_ref().is_none_or(|named| named.contains(gpu));
        let shown: BTreeSet<u32> = allowed.filter(is_named).collect();
        // A GPU that has not yet reported its UUID may match a name later. The lack of a match is
        // therefore an error only if all UUIDs are known.
        let may_be_unread = gpus.iter().any(|gpu| gpu.uuid.is_none());
        if shown.is_empty() && !may_be_unread {
            return Err(GpuLookupError::new(if named.is_some() {
                format!("none of the GPUs selected with -i is visible: {visible}")
            } else {
                format!("no GPU is visible: {visible}")
            }));
        }
        Ok(Some(shown))
    }

    /// Returns `true` if some GPUs may be hidden.
    pub(crate) fn may_hide_gpus(&self) -> bool {
        !self.ids.is_empty() || self.read_visibility().is_some()
    }

    #[cfg(test)]
    pub(crate) fn with_names(names: &[&str]) -> Self {
        Self {
            ids: names.iter().map(|name| (*name).to_owned()).collect(),
            only_visible: false,
        }
    }
}

/// Options that limit a list of processes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ShownProcesses {
    /// List only the processes with these PIDs, comma-separated
    #[arg(long = "pid", value_name = "PIDS", value_delimiter = ',', value_parser = parse_pid)]
    pids: Vec<u32>,

    /// List only processes that compute, of type C or C+G
    #[arg(long)]
    compute: bool,

    /// List only processes that draw, of type G or C+G; with --compute, list processes that do
    /// either
    #[arg(long)]
    graphics: bool,

    /// The only user whose processes are listed. Commands with such an option set this field.
    #[arg(skip)]
    pub(crate) user: Option<String>,
}

impl ShownProcesses {
    /// Returns the first of these options that the user typed.
    pub(crate) fn find_typed_option(&self) -> Option<&'static str> {
        let all = [
            ("--pid", !self.pids.is_empty()),
            ("--compute", self.compute),
            ("--graphics", self.graphics),
        ];
        all.into_iter()
            .find_map(|(name, is_typed)| is_typed.then_some(name))
    }

    /// Returns `true` if some processes may be hidden.
    pub(crate) fn may_hide_processes(&self) -> bool {
        self.user.is_some() || self.find_typed_option().is_some()
    }

    pub(crate) fn is_shown(&self, process: &Process) -> bool {
        let is_users = |user: &String| process.user.value() == Some(user);
        let computes = process.kind != ProcessKind::Graphics;
        let draws = process.kind != ProcessKind::Compute;
        let is_any_kind = !self.compute && !self.graphics;
        self.user.as_ref().is_none_or(is_users)
            && (self.pids.is_empty() || self.pids.contains(&process.pid))
            && (is_any_kind || self.compute && computes || self.graphics && draws)
    }
}

fn parse_pid(text: &str) -> Result<u32, String> {
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| "expected PIDs, separated by commas".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_options_are_separated_from_nvidia_smi_arguments() {
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
            let (reported, left) = SourceArgs::split_off_source_arguments(&words);
            assert_eq!(
                (reported.join(" ".as_ref()), left.join(" ".as_ref())),
                (own.into(), rest.into()),
                "{line}"
            );
        }
        let read = |words: &[&str]| {
            SourceArgs::parse_source_arguments(
                &words.iter().map(OsString::from).collect::<Vec<_>>(),
            )
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

#[cfg(test)]
mod shown_processes_tests {
    use super::*;
    use crate::table::examples;

    #[test]
    fn processes_are_filtered_by_pid_kind_and_user() {
        let kinds = [
            ProcessKind::Compute,
            ProcessKind::Graphics,
            ProcessKind::ComputeAndGraphics,
        ];
        let processes = kinds.map(|kind| Process {
            kind,
            ..examples::example_process(7, "ana", 1.0, "python")
        });
        let listed = |compute, graphics, pids: &[u32], user: Option<&str>| {
            let shown = ShownProcesses {
                pids: pids.to_vec(),
                compute,
                graphics,
                user: user.map(str::to_owned),
            };
            [0, 1, 2].map(|at: usize| shown.is_shown(&processes[at]))
        };
        assert_eq!(listed(false, false, &[], None), [true; 3]);
        assert_eq!(listed(true, false, &[7], None), [true, false, true]);
        assert_eq!(listed(false, true, &[7], Some("ana")), [false, true, true]);
        assert_eq!(listed(true, true, &[7, 8], None), [true; 3]);
        assert_eq!(listed(false, false, &[8], None), [false; 3]);
        assert_eq!(listed(false, false, &[], Some("bob")), [false; 3]);
    }

    #[test]
    fn pid_is_positive_number() {
        assert_eq!(parse_pid(" 7"), Ok(7));
        assert!(
            ["", "0", "-1", "x"]
                .iter()
                .all(|text| parse_pid(text).is_err())
        );
    }
}
