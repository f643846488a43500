//! Known differences between gpumon's output and that of the real tool, with reasons. If a line is
//! equal again, it must be removed from the list.

/// A value that gpumon shows differently.
struct Difference {
    /// A part of the captures' names; empty for all captures.
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
        why: "no function of NVML tells it",
    },
    Difference {
        captures: "geforce",
        form: "q",
        title: "Host Max",
        shown: "N/A",
        why: "it is read from this machine's /sys",
    },
    Difference {
        captures: "geforce",
        form: "query-gpu",
        title: "pcie.link.gen.hostmax",
        shown: "[N/A]",
        why: "it is read from this machine's /sys",
    },
];

/// Returns the real tool's output with the values that gpumon shows differently.
pub(super) fn applied(capture: &str, form: &str, mut printed: String) -> Result<String, String> {
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
                "{} is no difference any more, although {}; take it from the list",
                own.title, own.why
            ));
        }
    }
    Ok(printed)
}
