//! The heading line for a GPU, which contains its index, name, and UUID.

use gpumon_probe::vendor::nvml::query::{Code, Query, QueryBackend, Subject};

use crate::{Refusal, return_code};

/// Returns the heading line without a line break.
pub(crate) fn format_headline(driver: &dyn QueryBackend, gpu: u32) -> Result<String, Refusal> {
    let text = |query| {
        let answer = driver.answer_query(Subject::from_gpu(gpu), query)?;
        Ok(answer.text().unwrap_or("").to_owned())
    };
    let line = text(Query::Name)
        .and_then(|name| Ok(format!("GPU {gpu}: {name} (UUID: {})", text(Query::Uuid)?)));
    line.map_err(|code| {
        let bus_id =
            text(Query::BusId).map_or_else(|_: Code| String::new(), |bus_id| format!(" {bus_id}:"));
        let reason = match code {
            Code::GPU_IS_LOST => "GPU is lost.  Reboot the system to recover this GPU",
            other => return_code::format_plain(other),
        };
        Refusal::new(
            code.0 as u8,
            format!("Unable to determine the device handle for GPU{gpu}:{bus_id} {reason}\n"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scripted::ScriptedBackend;

    #[test]
    fn lost_gpu_is_reported() {
        let driver = ScriptedBackend::default()
            .with_answer(Subject::from_gpu(1), Query::Name, Err(Code::GPU_IS_LOST))
            .with_text(1, Query::BusId, "0000:65:00.0");
        let refusal = format_headline(&driver, 1).unwrap_err();
        assert_eq!(
            refusal.text,
            "Unable to determine the device handle for GPU1: 0000:65:00.0: GPU is lost.  Reboot \
             the system to recover this GPU\n"
        );
        assert_eq!(refusal.code, 15);
    }
}
