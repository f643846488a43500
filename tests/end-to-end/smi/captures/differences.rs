//! Where gpumon's output is not that of the real tool, and why: lines that are equal again must leave the list.

/// What gpumon shows in place of a value.
struct Difference {
    /// Part of the captures' names; empty for all.
    captures: &'static str,
    form: &'static str,
    /// What stands before the value's colon.
    title: &'static str,
    shown: &'static str,
    #[expect(dead_code, reason = "it is for readers")]
    why: &'static str,
}

/// Fields of `--query-gpu` that newer drivers have.
pub(super) const UNKNOWN_FIELDS: &[&str] = &[
    "kmd_version",
    "edpp_multiplier",
    "bbx.time_run",
    "gpu.base.current",
    "gpu.base.default",
    "gpu.base.max",
    "gpu.base.min",
    "gpu.base.requested",
    "power_smoothing.active_profile",
    "power_smoothing.admin_override.percent_tmp_floor",
    "power_smoothing.admin_override.ramp_down_hysteresis",
    "power_smoothing.admin_override.ramp_down_rate",
    "power_smoothing.admin_override.ramp_up_rate",
    "power_smoothing.curr_profile.percent_tmp_floor",
    "power_smoothing.curr_profile.ramp_down_hysteresis",
    "power_smoothing.curr_profile.ramp_down_rate",
    "power_smoothing.curr_profile.ramp_up_rate",
    "power_smoothing.enabled",
    "power_smoothing.hw_lifetime_remaining_percent",
    "power_smoothing.imm_ramp_down",
    "power_smoothing.max_percent_tmp_floor",
    "power_smoothing.min_percent_tmp_floor",
    "power_smoothing.num_preset_profiles",
    "power_smoothing.priv_level",
    "power_smoothing.soc_power_smoothing_enabled",
    "power_smoothing.tmp_ceil",
    "power_smoothing.tmp_floor",
];

const DIFFERENCES: &[Difference] = &[
    Difference { captures: "", form: "q", title: "GPU Part Number", shown: "N/A", why: "no function of NVML tells it" },
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
    Difference {
        captures: "",
        form: "query-gpu",
        title: "power.management",
        shown: "Enabled",
        why: "driver 590 and later call it deprecated",
    },
];

/// What the real tool printed, with what gpumon shows in place of what it does not know.
pub(super) fn applied(capture: &str, form: &str, mut printed: String) -> Result<String, String> {
    for own in DIFFERENCES.iter().filter(|own| capture.contains(own.captures) && own.form == form) {
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
            return Err(format!("{} is no difference; take it from the list", own.title));
        }
    }
    Ok(printed)
}
