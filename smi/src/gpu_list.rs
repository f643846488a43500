//! The list of GPUs: the output of `-L`, and the selection of GPUs with `-i`.

use std::fmt::Write;

use gpumon_probe::{
    model::normalize_bus_id,
    vendor::nvml::query::{Query, QueryBackend, Subject, SystemQuery},
};

use super::{Context, Refusal, error_messages::format_text_answer};

/// Returns the output for `-L`, which lists the GPUs and their MIG devices.
pub(crate) fn render_gpu_list(context: &Context<'_>) -> String {
    context
        .map_gpus(|gpu| render_listed_gpu(context, gpu))
        .concat()
}

fn render_listed_gpu(context: &Context<'_>, gpu: u32) -> String {
    let ask = |query| context.run_query(gpu, query);
    let mut out = format!(
        "GPU {gpu}: {} (UUID: {})\n",
        format_text_answer(&ask(Query::Name)),
        format_text_answer(&ask(Query::Uuid))
    );
    if !is_divided_into_mig(context.driver, gpu) {
        return out;
    }
    let devices =
        ask(Query::MigDevices).map_or_else(|_| Vec::new(), |list| list.numbers().to_vec());
    for device in devices {
        let about = |query| {
            context
                .driver
                .answer_query(Subject::from_mig(gpu, device as u32), query)
        };
        let name = format_text_answer(&about(Query::Name));
        let profile = name
            .rsplit_once("MIG ")
            .map_or(name.as_str(), |(_, profile)| profile);
        let uuid = format_text_answer(&about(Query::Uuid));
        // Writing to a string cannot fail, so the result is ignored.
        let _ = writeln!(out, "  MIG {profile:<12}Device {device:>2}: (UUID: {uuid})");
    }
    out
}

/// Returns the GPUs in a comma-separated list, in NVML's order and without duplicates. Without a
/// list, returns all GPUs.
///
/// A GPU can be given by its index, UUID, serial number, or bus ID. The bus ID may lack the domain
/// or its leading zeros. Like nvidia-smi, ignores words that match no GPU.
pub(crate) fn find_listed_gpus(
    driver: &dyn QueryBackend,
    text: Option<&str>,
) -> Result<Vec<u32>, Refusal> {
    if text.is_some_and(str::is_empty) {
        return Err(Refusal::new(
            255,
            "Failed to parse device string on command line",
        ));
    }
    let count = read_device_count(driver);
    let gpus: Vec<u32> = match text {
        None => (0..count).collect(),
        Some(text) => {
            let mut gpus: Vec<u32> = text
                .split(',')
                .filter_map(|word| find_gpu(driver, count, word.trim_start()))
                .collect();
            gpus.sort_unstable();
            gpus.dedup();
            gpus
        }
    };
    if gpus.is_empty() {
        Err(Refusal::new_no_devices())
    } else {
        Ok(gpus)
    }
}

/// Returns the number of GPUs, or 0 if the driver does not report it.
pub(crate) fn read_device_count(driver: &dyn QueryBackend) -> u32 {
    let count = driver
        .answer_system(SystemQuery::DeviceCount)
        .ok()
        .and_then(|answer| answer.number_at(0));
    count
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or(0)
}

/// Returns `true` if a GPU is divided into MIG devices.
pub(crate) fn is_divided_into_mig(driver: &dyn QueryBackend, gpu: u32) -> bool {
    read_number(driver, gpu, Query::MigMode) == Some(1)
}

/// Returns the first number of the answer to a query about a GPU, or `None` if there is none.
pub(crate) fn read_number(driver: &dyn QueryBackend, gpu: u32, query: Query) -> Option<i128> {
    let answer = driver.answer_query(Subject::from_gpu(gpu), query).ok()?;
    answer.number_at(0)
}

/// Returns the text in the answer to a query about a GPU, or `None` if there is none.
pub(crate) fn read_text(driver: &dyn QueryBackend, gpu: u32, query: Query) -> Option<String> {
    let answer = driver.answer_query(Subject::from_gpu(gpu), query).ok()?;
    answer.text().map(str::to_owned)
}

/// Returns the GPU that a word identifies. If the word is an integer below the number of GPUs, it
/// is an index, and no query is needed.
fn find_gpu(driver: &dyn QueryBackend, count: u32, word: &str) -> Option<u32> {
    if let Some(index) = word.parse().ok().filter(|index| *index < count) {
        return Some(index);
    }
    if word.is_empty() {
        return None;
    }
    let text = |gpu, query| read_text(driver, gpu, query);
    if let Some(bus_id) = normalize_bus_id(word) {
        return (0..count).find(|gpu| {
            text(*gpu, Query::BusId).and_then(|own| normalize_bus_id(&own)) == Some(bus_id.clone())
        });
    }
    let query = if word.starts_with("GPU-") {
        Query::Uuid
    } else {
        Query::Serial
    };
    (0..count).find(|gpu| text(*gpu, query).as_deref() == Some(word))
}

#[cfg(test)]
mod tests {
    use gpumon_probe::vendor::nvml::query::Value;

    use super::*;
    use crate::tests::scripted::ScriptedBackend;

    fn two_gpus() -> ScriptedBackend {
        ScriptedBackend::default()
            .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(2)))
            .with_text(0, Query::Uuid, "GPU-9ca18e3a-2fa7-dda5-c459-f1a949369cee")
            .with_text(1, Query::Uuid, "GPU-2b4dbf4c-88ba-09d8-5bfb-978dc3993b24")
            .with_text(0, Query::BusId, "00000000:00:06.0")
            .with_text(1, Query::BusId, "00000000:0A:07.0")
            .with_text(0, Query::Serial, "1653724033796")
            .with_text(1, Query::Serial, "1653724033797")
    }

    #[test]
    fn gpu_is_found_by_every_identifier() {
        for name in [
            "0",
            " 0",
            "0,",
            "0,9",
            "0,0",
            "00000000:00:06.0",
            "0000:00:06.0",
            "00:06.0",
            "0:6.0",
            "1653724033796",
        ] {
            assert_eq!(
                find_listed_gpus(&two_gpus(), Some(name)),
                Ok(vec![0]),
                "{name}"
            );
        }
        assert_eq!(
            find_listed_gpus(
                &two_gpus(),
                Some("GPU-9ca18e3a-2fa7-dda5-c459-f1a949369cee")
            ),
            Ok(vec![0])
        );
        assert_eq!(
            find_listed_gpus(&two_gpus(), Some("0000:0a:07.0")),
            Ok(vec![1])
        );
    }

    #[test]
    fn selected_gpus_follow_driver_order() {
        assert_eq!(find_listed_gpus(&two_gpus(), Some("1,0,1")), Ok(vec![0, 1]));
        assert_eq!(find_listed_gpus(&two_gpus(), None), Ok(vec![0, 1]));
    }

    #[test]
    fn unknown_gpu_is_refused() {
        for name in [
            "abc",
            "-1",
            "2",
            "GPU-9ca18e3a",
            "gpu-9ca18e3a-2fa7-dda5-c459-f1a949369cee",
            "00:06.1",
            "1:00:06.0",
        ] {
            assert_eq!(
                find_listed_gpus(&two_gpus(), Some(name)),
                Err(Refusal::new_no_devices()),
                "{name}"
            );
        }
        assert_eq!(
            find_listed_gpus(&two_gpus(), Some("")).unwrap_err().code,
            255
        );
        assert_eq!(
            find_listed_gpus(&ScriptedBackend::default(), None),
            Err(Refusal::new_no_devices())
        );
    }
}
