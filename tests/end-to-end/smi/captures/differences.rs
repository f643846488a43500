//! Known differences between gpumon's output and that of the real tool, with reasons. A difference
//! that no longer exists must be removed from the list.

/// A value that gpumon shows differently.
struct Difference {
    /// The difference applies to all captures whose names contain this text. An empty text matches
    /// all captures.
    captures: &'static str,
    form: &'static str,
    /// The text before the value's colon.
    title: &'static str,
    shown: &'static str,
    why: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        captures: "",
        form: "q",
        title: "GPU Part Number",
        shown: "N/A",
        why: "NVML has no function for the value",
    },
    Difference {
        captures: "geforce",
        form: "q",
        title: "Host Max",
        shown: "N/A",
        why: "the value is read from /sys of this machine",
    },
    Difference {
        captures: "geforce",
        form: "query-gpu",
        title: "pcie.link.gen.hostmax",
        shown: "[N/A]",
        why: "the value is read from /sys of this machine",
    },
];

/// Returns the real tool's output with the values that gpumon shows differently.
pub(super) fn apply_differences(
    capture: &str,
    form: &str,
    mut printed: String,
) -> Result<String, String> {
    for own in DIFFERENCES
        .iter()
        .filter(|own| capture.contains(own.captures) && own.form == form)
    {
        let mut found = false;
        let line = |line: &str| {
            let (title, value) = line.split_once(" : ").unwrap_or((line, ""));
            if title.trim() != own.title || value == own.shown {
                return line.to_owned() + "\n";
            }
            found = true;
            format!("{title} : {}\n", own.shown)
        };
        printed = printed.lines().map(line).collect();
        if !found {
            return Err(format!(
                "{} no longer differs, although {}; remove it from DIFFERENCES",
                own.title, own.why
            ));
        }
    }
    Ok(printed)
}
