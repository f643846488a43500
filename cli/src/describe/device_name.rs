//! The names of devices.

use gpumon_probe::model::{Reading, Vendor};
use gpumon_workload::protocol::DeviceName;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The maximum width of a name. A longer name would take space from the readings.
pub(crate) const MAX_NAME_WIDTH: usize = 24;

/// The least informative words of device names, in the order in which they are removed. The GPUs of
/// one machine rarely differ only in these words.
const DISPENSABLE_WORDS: [&str; 9] = [
    "Edition",
    "Generation",
    "GPU",
    "Blackwell",
    "Hopper",
    "Ampere",
    "Ada",
    "Lovelace",
    "Workstation",
];

/// Returns a GPU's name without the vendor's name.
pub(crate) fn format_name_without_vendor(name: Option<&Reading<String>>) -> String {
    let name = name.and_then(Reading::value);
    name.map_or_else(
        || "unknown GPU".to_owned(),
        |name| Vendor::strip_vendor(name).to_owned(),
    )
}

/// Returns the label of a device that runs a workload, such as `GPU 0: H200`.
pub(crate) fn label_device(device: &DeviceName) -> String {
    let name = Vendor::strip_vendor(&device.name);
    device
        .index
        .map_or_else(|| capitalize(name), |index| format!("GPU {index}: {name}"))
}

pub(crate) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Shortens a name to at most `columns` columns. Uninformative words are removed first; then the
/// name is cut.
pub(crate) fn fit_name(name: &str, columns: usize, ellipsis: &str) -> String {
    let mut words: Vec<&str> = name.split(' ').collect();
    for needless in DISPENSABLE_WORDS {
        if words.join(" ").width() <= columns {
            break;
        }
        words.retain(|word| *word != needless);
    }
    let short = words.join(" ");
    // A name that consists only of uninformative words is kept.
    let short = if short.is_empty() {
        name.to_owned()
    } else {
        short
    };
    if short.width() <= columns {
        short
    } else {
        cut(&short, columns, ellipsis)
    }
}

fn cut(text: &str, columns: usize, ellipsis: &str) -> String {
    let mut width = 1;
    let fits = text.chars().take_while(|letter| {
        width += letter.width().unwrap_or(0);
        width <= columns
    });
    if columns == 0 {
        String::new()
    } else {
        fits.collect::<String>() + ellipsis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_of_different_gpus_differ() {
        for (name, short) in [
            ("H200", "H200"),
            ("A100-SXM4-80GB", "A100-SXM4-80GB"),
            ("RTX 6000 Ada Generation", "RTX 6000 Ada Generation"),
            ("RTX 4000 SFF Ada Generation", "RTX 4000 SFF Ada"),
            ("GeForce RTX 4090 Laptop GPU", "GeForce RTX 4090 Laptop"),
            (
                "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
                "RTX PRO 6000 Max-Q",
            ),
            (
                "RTX PRO 6000 Blackwell Workstation Edition",
                "RTX PRO 6000 Workstation",
            ),
            (
                "RTX PRO 6000 Blackwell Server Edition",
                "RTX PRO 6000 Server",
            ),
        ] {
            assert_eq!(fit_name(name, MAX_NAME_WIDTH, "…"), short);
        }
    }

    #[test]
    fn long_name_is_truncated_with_ellipsis() {
        assert_eq!(
            fit_name("RTX PRO 6000 Blackwell Max-Q", 10, "…"),
            "RTX PRO 6…"
        );
        assert_eq!(fit_name("訓練データ", 6, "…"), "訓練…");
        assert_eq!(fit_name("GPU", 2, "~"), "G~");
        assert_eq!(fit_name("anything", 0, "…"), "");
    }
}
