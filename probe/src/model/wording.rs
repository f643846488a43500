//! The wording of conditions and of limits, in two tables. The server, terminals and assistants
//! fill in the values; the browser translates texts that are generated from the table.
//!
//! In a text, `{idle_ms}` is the value of that field, formatted according to the unit at the end of
//! its name, and `{#links}` is a number or the length of a list. `[failed|one|other]` is the text
//! `one` if the field `failed` is present, true or not empty, and otherwise the text `other`;
//! `[#links|one|several]` has a text for one item and a text for several, and is empty for none;
//! `[action|reset=text|drain=text]` has a text for each possible word in the field.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ConditionKind, LimitClass, LimitEvidence, ThrottleReason};
use crate::units::{
    format_approximate_duration, format_byte_size, format_duration, format_three_digits, join_list,
};

/// The maximum number of processes named in a text. All others are only counted.
const MAX_NAMES: usize = 3;

/// A GPU is slow if its clock is below this share of its usual clock. Warm boards lower their clock
/// by a few steps without reporting a reason.
pub const SLOW_CLOCK_RATIO: f64 = 0.93;

/// The wording for one kind of condition.
#[derive(Debug)]
pub struct Wording {
    /// The kind's tag in JSON.
    pub tag: &'static str,
    /// The name of the condition, as a heading.
    pub label: &'static str,
    /// The condition in at most 24 columns, for display between numbers in a line.
    pub short: &'static str,
    /// A longer text, for display on a separate line.
    pub long: &'static str,
    /// The condition and its remedy in sentences.
    pub text: &'static str,
}

/// The text for each process in a condition's list of processes.
pub const GPU_PROCESS: &str = "GPU {gpu} (PID {pid})";

/// Sentences for users who may not see the processes: one for each condition whose text names
/// processes.
const ANONYMOUS_TEXTS: [(&str, &str); 3] = [
    (
        "held_idle",
        "Processes hold memory, but have been idle for minutes.",
    ),
    (
        "suspected_hang",
        "Kernels have run for minutes without a pause, but make no progress.",
    ),
    (
        "memory_filling",
        "Memory use grows steadily, and memory will be full within an hour.",
    ),
];

macro_rules! wordings {
    ($($tag:literal $label:literal $short:literal $long:literal $text:literal;)+) => {
        &[$(Wording { tag: $tag, label: $label, short: $short, long: $long, text: $text }),+]
    };
}

/// The wording of every kind of condition except Xids, which are in a separate table.
pub static WORDINGS: &[Wording] = wordings! {
    "throttled" "Clocks reduced" "{reasons}" "{reasons}" "Clocks reduced: {reasons}.";
    "held_idle" "Idle, holding memory" "idle {idle_ms}" "idle for {idle_ms}, holding memory"
        "{pids} idle for {idle_ms}, holding {bytes}.";
    "hardly_used" "Low SM use" "low SM use: {sm_percent}" "low SM activity: {sm_percent}"
        "[tensor_percent|Low SM activity: kernels run {gpu_percent} of the time on {sm_percent} of \
         the SMs and {tensor_percent} of the tensor cores. The kernels are small, or wait for \
         data.|Low SM activity: kernels run {gpu_percent} of the time on {sm_percent} of the SMs. \
         The kernels are small, or wait for data.]";
    "suspected_hang" "Suspected hang" "suspected hang"
        "suspected hang: [only|{differing} is not waiting|kernels run without progress]"
        "[pids|Suspected hang: the kernels of {pids} run all the time at {power_watts}, but make \
         no progress.|Suspected hang: the kernels run all the time at {power_watts}, but make no \
         progress.][#waiting| GPU {waiting} of the same job is also waiting.| GPUs {waiting} of \
         the same job are also waiting.][#differing| {differing} of the same job is not waiting: \
         check it first.| {differing} of the same job are not waiting: check them first.]";
    "held_by_nobody" "Memory held by no process" "{bytes}, no process"
        "{bytes} used by no listed process"
        "{bytes} used by no listed process: the memory belongs to a container that gpumon cannot \
         see, or to a process that has ended but was not reaped by its parent, or it is managed \
         memory. `sudo fuser -v /dev/nvidia*` on the host lists the processes that have the GPU \
         open.";
    "slower_than_itself" "Slower than usual" "slow: {sm_mhz}"
        "slower than usual: {sm_mhz} instead of {usual_sm_mhz}"
        "Slower than usual: {sm_mhz} and {power_watts} at a load that usually gives \
         {usual_sm_mhz} and {usual_power_watts}.[#faster| GPU {faster} is faster at the same \
         load.| GPUs {faster} are faster at the same load.][#stronger| GPU {stronger} draws more \
         power at the same load.| GPUs {stronger} draw more power at the same load.] The driver \
         reports no reason: check power cables and cooling, and reset the GPU when it is idle.";
    "below_baseline" "Slower than baseline" "bench {ratio}x"
        "slower than baseline: {workload} at {ratio}x the speed"
        "Slower than baseline: {workload} ({dtype}) takes {median_us}, compared with \
         {baseline_us} before ({ratio}x the speed). Check power limit, clocks and cooling. If \
         the change is intended, store a new baseline: `gpumon bench --save-baseline`.";
    "memory_nearly_full" "Memory nearly full" "memory: {free_bytes} left"
        "memory nearly full: {free_bytes} left"
        "Memory nearly full: {free_bytes} of {total_bytes} free. The next allocation may fail.";
    "memory_filling" "Memory filling up" "full in {left_ms}"
        "memory full in about {left_ms}: grows by {bytes_per_second}"
        "Memory full in about {left_ms}: grows by {bytes_per_second}[growing| \
         ({growing})|].";
    "ecc_uncorrected" "Memory errors" "[#count|{#count} memory error|{#count} memory errors]"
        "[#count|{#count} uncorrectable memory error|{#count} uncorrectable memory errors]"
        "[#count|{#count} uncorrectable memory error since the driver was loaded: results may be \
         wrong. Reset the GPU when it is idle.|{#count} uncorrectable memory errors since the \
         driver was loaded: results may be wrong. Reset the GPU when it is idle.]";
    "row_remap" "Row remapping pending" "[failed|no spare memory rows|row remapping pending]"
        "[failed|row remapping failed: no spare rows|row remapping pending: reset the GPU]"
        "[failed|Row remapping failed: no spare rows are left. Replace the board.|Row remapping \
         pending: reset the GPU when it is idle.]";
    "page_retirement_pending" "Page retirement pending" "page retirement pending"
        "page retirement pending: reset the GPU"
        "Page retirement pending: reset the GPU when it is idle.";
    "recovery_needed" "Recovery required"
        "[action|none=nothing to recover|gpu_reset=reset required|node_reboot=reboot required\
         |drain_p2p=peer-to-peer drain|drain_and_reset=drain, then reset]"
        "[action|none=nothing to recover|gpu_reset=GPU reset required|node_reboot=reboot required\
         |drain_p2p=peer-to-peer drain required|drain_and_reset=drain and reset required]"
        "[action|none=The driver requests no recovery action.|gpu_reset=GPU reset required: \
         stop the processes on the GPU, then run `nvidia-smi --gpu-reset`.|node_reboot=Reboot \
         required before the GPU is used again.|drain_p2p=Peer-to-peer drain required: stop \
         programs that use several GPUs together, and start no new ones until they have \
         ended.|drain_and_reset=Drain and reset required: let running programs end, start no \
         new ones, then reset the GPU.]";
    "nv_link_down" "NVLink down" "[#links|NVLink {links} down|{#links} NVLinks down]"
        "[#links|NVLink {links} down|{#links} NVLinks down]"
        "[#links|NVLink {links} down: transfers between GPUs are slow or fail. See `nvidia-smi \
         nvlink -s`, and reset the GPUs when they are idle.|NVLinks {links} down: transfers \
         between GPUs are slow or fail. See `nvidia-smi nvlink -s`, and reset the GPUs when they \
         are idle.]";
    "pcie_degraded" "PCIe link degraded" "PCIe x{width} of x{max_width}"
        "PCIe x{width} instead of x{max_width}"
        "PCIe link degraded: x{width} of x{max_width}. Copies to and from the GPU are slow. \
         Check the board's seating, riser and slot.";
};

impl ConditionKind {
    /// Returns the condition and its remedy in sentences. `name` returns the name of a process,
    /// given its PID.
    pub fn text(&self, name: &dyn Fn(u32) -> String) -> String {
        self.fill_wording(|wording| wording.text, name)
    }

    /// Returns the condition in at most 24 columns.
    pub fn short_text(&self) -> String {
        self.fill_wording(|wording| wording.short, &|_| String::new())
    }

    /// Returns a description of the condition for a separate line, without process names.
    pub fn long_text(&self) -> String {
        self.fill_wording(|wording| wording.long, &|_| String::new())
    }

    /// Returns the sentence for users who may not see the processes named in the text; `None` if
    /// the text names no processes.
    pub fn anonymous_text(&self) -> Option<&'static str> {
        let known = ANONYMOUS_TEXTS
            .iter()
            .find(|(tag, _)| self.tag() == Some(tag));
        known.map(|(_, sentence)| *sentence)
    }

    /// Returns `true` if the texts of conditions with this tag contain names of processes or
    /// notebooks.
    pub fn texts_contain_process_names(tag: &str) -> bool {
        ANONYMOUS_TEXTS.iter().any(|(known, _)| *known == tag)
    }

    fn fill_wording(
        &self,
        text: fn(&Wording) -> &'static str,
        name: &dyn Fn(u32) -> String,
    ) -> String {
        let wording = WORDINGS.iter().find(|it| self.tag() == Some(it.tag));
        let values = serde_json::to_value(self).unwrap_or_default();
        let (Some(wording), Value::Object(mut values)) = (wording, values) else {
            return String::new();
        };
        match self {
            Self::SlowerThanItself {
                sm_mhz,
                usual_sm_mhz,
                siblings,
                ..
            } => {
                let is_slow = *sm_mhz < usual_sm_mhz * SLOW_CLOCK_RATIO;
                let siblings_are = if is_slow { "faster" } else { "stronger" };
                values.insert(siblings_are.to_owned(), siblings.clone().into());
            }
            Self::BelowBaseline {
                median_us,
                baseline_us,
                ..
            } => {
                let ratio = format!("{:.2}", baseline_us / median_us);
                values.insert("ratio".to_owned(), ratio.into());
            }
            Self::SuspectedHang { differing, .. } => {
                values.insert("only".to_owned(), (differing.len() == 1).into());
            }
            _ => {}
        }
        ConditionFields { values, name }.fill_template(text(wording))
    }
}

impl LimitClass {
    /// Returns the templates of the evidence, as sentences, and of the advice, which is empty if
    /// there is nothing to improve. Placeholders are as in [`WORDINGS`].
    pub fn wording(self) -> (&'static str, &'static str) {
        match self {
            Self::Idle => ("No kernels or copies run.", ""),
            Self::Host => (
                "[#workers|{#workers} worker process uses {workers_percent} of a core while the \
                 GPU waits.|{#workers} worker processes use {workers_percent} of a core while the \
                 GPU waits.][workers||A process uses {cpu_percent} of a core while the GPU waits.]",
                "[cores|Raise `num_workers`: the loader uses {#workers} of {#cores} \
                 cores.|Prepare data in worker processes or on the GPU, and start the next step \
                 before its result is needed.]",
            ),
            Self::Input => (
                "A process waits for a disk or the network.[disk_bytes_per_second| Disks deliver \
                 {disk_bytes_per_second}.|][network_bytes_per_second| The network delivers \
                 {network_bytes_per_second}.|]",
                "Read ahead in parallel, store the data in fewer and larger files, or keep it in \
                 memory.",
            ),
            Self::Transfer => (
                "[small_copies|Many small copies run: PCIe carries {pcie_bytes_per_second}.|PCIe \
                 carries {pcie_bytes_per_second} while no kernel runs.]",
                "[small_copies|Batch the copies: one large copy instead of many small ones.|Keep \
                 data on the GPU, pin host memory (`pin_memory=True`), and overlap copies with \
                 kernels (`non_blocking=True`).]",
            ),
            Self::Communication => (
                "[wait_ms|Kernels wait {#wait_ms} ms of each second for GPU {#slow_gpu}.|Kernels \
                 exchange data with other GPUs, or wait for them.][#slow_ranks| GPU {#slow_gpu} \
                 runs rank {slow_ranks}.| GPU {#slow_gpu} runs ranks \
                 {slow_ranks}.][nvlink_bytes_per_second| NVLink carries \
                 {nvlink_bytes_per_second}.|]",
                "[wait_ms|Find out what limits GPU {#slow_gpu}: the other GPUs of the job wait \
                 for it.|Overlap communication with computing, accumulate gradients, or use \
                 larger batches for each GPU.]",
            ),
            Self::Memory => (
                "Device memory works at {dram_percent} of its peak bandwidth.",
                "Fuse kernels (`torch.compile`), use narrower types, or process larger batches.",
            ),
            Self::Tensor => (
                "Tensor cores are busy {tensor_percent} of the time.",
                "[is_tensor_double|The GPU is well used. TF32 or BF16 are faster than FP64, if \
                 they are precise enough.|The GPU is well used. Narrower types such as FP8 are \
                 faster.]",
            ),
            Self::Compute => (
                "[arithmetic_unit|fp64=FP64 units are busy {arithmetic_percent} of the time, \
                 tensor cores {tensor_percent}.|fp32=FP32 units are busy {arithmetic_percent} of \
                 the time, tensor cores {tensor_percent}.|fp16=FP16 units are busy \
                 {arithmetic_percent} of the time, tensor cores {tensor_percent}.|integer=Integer \
                 units are busy {arithmetic_percent} of the time, tensor cores {tensor_percent}.]",
                "[arithmetic_unit|fp64=Use FP32 or BF16, if they are precise enough.|fp32=Use \
                 BF16 or TF32 for matrix products: the tensor cores are idle.|fp16=Use matrix \
                 products, which run on the tensor cores.]",
            ),
            Self::Latency => (
                "Kernels run {gpu_percent} of the time on {sm_percent} of the SMs: they are \
                 small, or wait for each other.",
                "Fuse kernels (`torch.compile`), launch them in a CUDA graph, synchronize less \
                 often, or use larger batches.",
            ),
            Self::Power => (
                "[too_hot|The temperature reduces the clocks.|The power limit reduces the \
                 clocks.][max_sm_mhz| The SM clock is {sm_mhz} instead of {max_sm_mhz}.|]",
                "[too_hot|Improve the cooling.|Narrower types need less power; an administrator \
                 can raise the power limit.]",
            ),
            Self::Shared => (
                "{#owners} owners use the SMs at the same time.",
                "Move one of the programs to another GPU, or run them one after the other.",
            ),
            Self::Unknown => (
                "Kernels or copies run {gpu_percent} of the time; this GPU has no counters that \
                 show what limits kernels.",
                "",
            ),
        }
    }
}

impl LimitEvidence {
    /// Returns the evidence and the advice for a main cause.
    pub(super) fn describe(&self, main: LimitClass) -> (String, String) {
        let Ok(Value::Object(values)) = serde_json::to_value(self) else {
            return Default::default();
        };
        let (text, advice) = main.wording();
        (
            fill_template(values.clone(), text),
            fill_template(values, advice),
        )
    }
}

/// Fills in a template with the values of fields that contain no processes. Returns an empty text
/// if the template needs a value that is absent.
fn fill_template(values: Map<String, Value>, text: &str) -> String {
    let name = &|_| String::new();
    let fields = ConditionFields { values, name };
    let chosen = fields.choose_alternatives(text);
    let mut needed = chosen.split('{').skip(1);
    let is_complete = needed.all(|part| {
        let field = part.split('}').next().unwrap_or_default();
        fields.values.contains_key(field.trim_start_matches('#'))
    });
    if is_complete {
        fields.fill_fields(&chosen)
    } else {
        String::new()
    }
}

/// The values of a condition's fields, by field name.
struct ConditionFields<'a> {
    values: Map<String, Value>,
    name: &'a dyn Fn(u32) -> String,
}

impl ConditionFields<'_> {
    fn fill_template(&self, text: &str) -> String {
        self.fill_fields(&self.choose_alternatives(text))
    }

    /// Returns the template with only those alternatives that apply.
    fn choose_alternatives(&self, text: &str) -> String {
        let mut parts = text.split('[');
        let mut chosen = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (choice, rest) = part.split_once(']').unwrap_or((part, ""));
            chosen += self.choose_alternative(choice);
            chosen += rest;
        }
        chosen
    }

    fn choose_alternative<'t>(&self, choice: &'t str) -> &'t str {
        let (field, texts) = choice.split_once('|').unwrap_or_default();
        if let Some(Value::String(word)) = self.values.get(field) {
            let mut words = texts.split('|').filter_map(|text| text.split_once('='));
            let known = words.find(|(known, _)| known == word);
            return known.map_or("", |(_, text)| text);
        }
        if texts.split('|').all(|text| text.contains('=')) {
            return "";
        }
        let (first, second) = texts.split_once('|').unwrap_or_default();
        match (field.strip_prefix('#'), self.count_in_field(field)) {
            (Some(_), 0) => "",
            (Some(_), 1) | (None, 1..) => first,
            _ => second,
        }
    }

    fn fill_fields(&self, text: &str) -> String {
        let mut parts = text.split('{');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (field, rest) = part.split_once('}').unwrap_or((part, ""));
            filled += &self.format_field(field);
            filled += rest;
        }
        filled
    }

    /// Returns the number in `field`, or the length of the list in it. Returns 0 if the field is
    /// absent or false.
    fn count_in_field(&self, field: &str) -> u64 {
        match self.values.get(field.trim_start_matches('#')) {
            None | Some(Value::Null) => 0,
            Some(Value::Bool(is)) => (*is).into(),
            Some(Value::Array(items)) => items.len() as u64,
            Some(value) => value.as_u64().unwrap_or(1),
        }
    }

    fn format_field(&self, field: &str) -> String {
        match self.values.get(field) {
            None => self.count_in_field(field).to_string(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(items)) => self.format_list(field, items),
            Some(value) => {
                let number = value.as_f64().unwrap_or_default();
                match field.rsplit('_').next().unwrap_or_default() {
                    "bytes" => format_byte_size(number),
                    "second" => format!("{}/s", format_byte_size(number)),
                    "ms" if field == "left_ms" => format_approximate_duration(number as u64),
                    "ms" => format_duration(number as u64),
                    "us" => format!("{} us", format_three_digits(number)),
                    "percent" => format!("{number:.0} %"),
                    "watts" => format!("{number:.0} W"),
                    "mhz" => format!("{number:.0} MHz"),
                    "celsius" => format!("{number:.0} °C"),
                    _ => number.to_string(),
                }
            }
        }
    }

    /// Formats the items of a list as in `1, 2 and 3`.
    fn format_list(&self, field: &str, items: &[Value]) -> String {
        let most = match field {
            "pids" | "growing" => MAX_NAMES,
            _ => items.len(),
        };
        let shown = items.iter().take(most);
        let mut shown: Vec<String> = shown.map(|item| self.format_item(field, item)).collect();
        if items.len() > most {
            shown.push(format!("{} more", items.len().saturating_sub(most)));
        }
        join_list(&shown)
    }

    fn format_item(&self, field: &str, item: &Value) -> String {
        match field {
            "pids" | "growing" => {
                let pid = item.get("pid").unwrap_or(item).as_u64();
                (self.name)(pid.unwrap_or_default() as u32)
            }
            "differing" => ["gpu", "pid"]
                .iter()
                .fold(GPU_PROCESS.to_owned(), |text, part| {
                    text.replace(&format!("{{{part}}}"), &item[*part].to_string())
                }),
            "reasons" => ThrottleReason::deserialize(item).map_or_else(
                |_| String::new(),
                |reason| self.fill_template(reason.info().text),
            ),
            _ => item.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn last_two_list_items_are_joined_by_and() {
        let list = |items: &[u32]| {
            let links = items.to_vec();
            let text = ConditionKind::NvLinkDown { links }.text(&|_| String::new());
            text.split(" down").next().unwrap().to_owned()
        };
        assert_eq!(
            [list(&[1]), list(&[1, 2]), list(&[1, 2, 3])],
            ["NVLink 1", "NVLinks 1 and 2", "NVLinks 1, 2 and 3"]
        );
    }

    #[test]
    fn at_most_three_processes_are_named() {
        let kind = ConditionKind::HeldIdle {
            bytes: 1 << 30,
            idle_ms: 60_000,
            pids: vec![1, 2, 3, 4, 5],
        };
        assert_eq!(
            kind.text(&|pid| format!("p{pid}")),
            "p1, p2, p3 and 2 more idle for 1 min, holding 1.00 GiB."
        );
    }

    #[test]
    fn every_condition_kind_has_wording() {
        let kinds: Vec<_> = WORDINGS.iter().map(|wording| wording.tag).collect();
        for tag in ConditionKind::TAGS {
            assert!(*tag == "xid" || kinds.contains(tag), "{tag}");
        }
    }

    /// Returns the short, long and full text of a condition given as JSON. Processes are named by
    /// their PIDs.
    fn fill(json: serde_json::Value) -> [String; 3] {
        let kind: ConditionKind = serde_json::from_value(json).unwrap();
        let text = kind.text(&|pid| format!("p{pid}"));
        [kind.short_text(), kind.long_text(), text]
    }

    #[test]
    fn condition_texts_depend_on_condition_fields() {
        let used = |tensor: Option<f64>| {
            json!({
                "condition": "hardly_used",
                "gpu_percent": 99.2,
                "sm_percent": 8.0,
                "tensor_percent": tensor,
            })
        };
        assert_eq!(
            fill(used(Some(0.4))),
            [
                "low SM use: 8 %",
                "low SM activity: 8 %",
                "Low SM activity: kernels run 99 % of the time on 8 % of the SMs and 0 % of the \
                 tensor cores. The kernels are small, or wait for data."
            ]
        );
        assert!(fill(used(None))[2].starts_with(
            "Low SM activity: kernels run 99 % of the time on 8 % of the SMs. The kernels are small"
        ));
        let remapped = |failed: bool| {
            fill(json!({ "condition": "row_remap", "pending": true, "failed": failed }))
        };
        assert_eq!(
            [remapped(false)[2].as_str(), remapped(true)[0].as_str()],
            [
                "Row remapping pending: reset the GPU when it is idle.",
                "no spare memory rows"
            ]
        );
        assert_eq!(
            fill(json!({ "condition": "recovery_needed", "action": "drain_and_reset" })),
            [
                "drain, then reset",
                "drain and reset required",
                "Drain and reset required: let running programs end, start no new ones, then \
                 reset the GPU."
            ]
        );
        assert_eq!(
            fill(json!({ "condition": "ecc_uncorrected", "count": 2 }))[1],
            "2 uncorrectable memory errors"
        );
    }

    #[test]
    fn condition_texts_have_values_with_units() {
        let slower = |sm_mhz: f64, siblings: &[u32]| {
            let text = fill(json!({
                "condition": "slower_than_itself",
                "sm_mhz": sm_mhz,
                "usual_sm_mhz": 1980.0,
                "power_watts": 330.0,
                "usual_power_watts": 500.0,
                "siblings": siblings,
            }));
            text[2].clone()
        };
        assert_eq!(
            slower(1410.0, &[1, 2]),
            "Slower than usual: 1410 MHz and 330 W at a load that usually gives 1980 MHz and 500 \
             W. GPUs 1 and 2 are faster at the same load. The driver reports no reason: check \
             power cables and cooling, and reset the GPU when it is idle."
        );
        assert!(
            slower(1980.0, &[2])
                .contains(" and 500 W. GPU 2 draws more power at the same load. The driver")
        );
        assert!(
            slower(1410.0, &[])
                .contains("usually gives 1980 MHz and 500 W. The driver reports no reason")
        );
        assert_eq!(
            fill(json!({ "condition": "pcie_degraded", "width": 8, "max_width": 16 })),
            [
                "PCIe x8 of x16",
                "PCIe x8 instead of x16",
                "PCIe link degraded: x8 of x16. Copies to and from the GPU are slow. Check the \
                 board's seating, riser and slot."
            ]
        );
        let hang = fill(json!({
            "condition": "suspected_hang",
            "power_watts": 123.2,
            "pids": [7],
            "waiting": [1, 2],
            "differing": [{ "gpu": 3, "pid": 13 }],
        }));
        assert_eq!(
            hang,
            [
                "suspected hang",
                "suspected hang: GPU 3 (PID 13) is not waiting",
                "Suspected hang: the kernels of p7 run all the time at 123 W, but make no \
                 progress. GPUs 1 and 2 of the same job are also waiting. GPU 3 (PID 13) of the \
                 same job is not waiting: check it first."
            ]
        );
    }
}
