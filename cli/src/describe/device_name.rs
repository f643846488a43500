//! The names of devices.

use gpumon_probe::model::{Reading, Vendor};
use gpumon_workload::protocol::DeviceName;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The maximum width of a name. A longer name would take space from the readings.
pub(crate) const LONGEST: usize = 24;

/// The least informative words of names, in the order of their removal. The GPUs of one machine
/// rarely differ in these words alone.
const NEEDLESS: [&str; 9] = [
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

/// Returns a GPU's name without the vendor, which is the same for all GPUs.
pub(crate) fn full_name(name: Option<&Reading<String>>) -> String {
    let name = name.and_then(Reading::value);
    name.map_or_else(
        || "unknown GPU".to_owned(),
        |name| Vendor::strip_from(name).to_owned(),
    )
}

/// Returns the name of a device on which a workload runs, such as `GPU 0: H200`.
pub(crate) fn device(device: &DeviceName) -> String {
    let name = Vendor::strip_from(&device.name);
    device
        .index
        .map_or_else(|| capital(name), |index| format!("GPU {index}: {name}"))
}

pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Fits a name into this many columns. Uninformative words are removed first, and then the name is
/// cut.
pub(crate) fn fit_name(name: &str, columns: usize, ellipsis: &str) -> String {
    let mut words: Vec<&str> = name.split(' ').collect();
    for needless in NEEDLESS {
        if words.join(" ").width() <= columns {
            break;
        }
        words.retain(|word| *word != needless);
    }
    let short = words.join(" ");
    // A name that consists only of such words is kept.
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
    fn boards_that_differ_are_still_told_apart() {
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
            assert_eq!(fit_name(name, LONGEST, "…"), short);
        }
    }

    #[test]
    fn what_still_does_not_fit_is_cut_and_says_so() {
        assert_eq!(
            fit_name("RTX PRO 6000 Blackwell Max-Q", 10, "…"),
            "RTX PRO 6…"
        );
        assert_eq!(fit_name("訓練データ", 6, "…"), "訓練…");
        assert_eq!(fit_name("GPU", 2, "~"), "G~");
        assert_eq!(fit_name("anything", 0, "…"), "");
    }
}
