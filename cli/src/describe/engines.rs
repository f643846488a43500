//! Formats the utilization of a GPU's video engines and the state of its PCIe link.

use gpumon_probe::model::GpuSample;

/// Formats the utilization of encoder and decoder, such as `enc/dec 0/35 %`. Returns `None` if both
/// are absent.
pub(crate) fn format_codec_utilization(gpu: &GpuSample) -> Option<String> {
    let utilization = &gpu.utilization;
    let [encoder, decoder] = [&utilization.encoder_percent, &utilization.decoder_percent]
        .map(|percent| percent.value().map(|percent| format!("{percent:.0}")));
    match (encoder, decoder) {
        (Some(encoder), Some(decoder)) => Some(format!("enc/dec {encoder}/{decoder} %")),
        (Some(encoder), None) => Some(format!("enc {encoder} %")),
        (None, Some(decoder)) => Some(format!("dec {decoder} %")),
        (None, None) => None,
    }
}

/// Formats the generation and width of the PCIe link, such as `5x16`. Returns `None` if either is
/// absent.
pub(crate) fn format_pcie_link(gpu: &GpuSample) -> Option<String> {
    let (generation, width) = (gpu.pcie.generation.value()?, gpu.pcie.width.value()?);
    Some(format!("{generation}x{width}"))
}
