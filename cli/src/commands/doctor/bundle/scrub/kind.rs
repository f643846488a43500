//! What is replaced, and by what word.

/// What an original is of; its placeholders are numbered by kind, as `user-1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Kind {
    User,
    Host,
    /// UUIDs of GPUs and MIG devices, and IDs of kernels, pods and containers.
    Id,
    Serial,
    Program,
    Command,
    Notebook,
    Path,
    Job,
    Unit,
    Address,
    /// Sentences that name processes, and those that people wrote.
    Text,
}

/// Programs that everybody has, with the digits and dots of their versions taken off.
const PUBLIC_PROGRAMS: &str = "\
    <unknown> Xorg bash containerd-shim gnome-shell gpumon ir java julia jupyter-lab jupyter-labhub \
    jupyter-noteboo nvidia-smi python sh slurmstepd sshd systemd";

impl Kind {
    /// The word in its placeholders, and what a list of what was replaced calls it.
    pub(in super::super) fn labels(self) -> (&'static str, &'static str) {
        match self {
            Self::User => ("user", "user names"),
            Self::Host => ("host", "host names"),
            Self::Id => ("id", "UUIDs and IDs"),
            Self::Serial => ("serial", "serial numbers"),
            Self::Program => ("program", "program names"),
            Self::Command => ("command", "command lines"),
            Self::Notebook => ("notebook", "notebooks"),
            Self::Path => ("path", "paths"),
            Self::Job => ("job", "batch jobs"),
            Self::Unit => ("unit", "systemd units"),
            Self::Address => ("address", "addresses"),
            Self::Text => ("text", "texts"),
        }
    }

    /// Whether it is the same on every machine.
    pub(super) fn is_public(self, original: &str) -> bool {
        match self {
            Self::User => ["root", "nobody"].contains(&original),
            Self::Host => original == "localhost",
            Self::Program => PUBLIC_PROGRAMS
                .split(' ')
                .any(|program| program == versionless(original)),
            Self::Path => {
                ["libcublas.so", "libcuda.so", "libnvidia-ml.so"].contains(&versionless(original))
            }
            _ => false,
        }
    }
}

fn versionless(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.')
}
