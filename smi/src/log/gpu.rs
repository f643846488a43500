//! Writing of a GPU's block, which contains all items in order.

use std::thread;

use gpumon_probe::vendor::nvml::query::{Query, Subject};

use super::{
    board, clocks,
    cursor::{Cursor, OutputFormat},
    device::Device,
    ecc, fabric,
    item::Item,
    memory, mig, pci, performance, power, processes, profiles, repairs, temperature,
    text::remove_control_characters,
    utilization, vgpu,
};
use crate::Context;

pub(super) static ITEMS: &[&[Item]] = &[
    board::NAMES,
    vgpu::CAPABILITIES,
    mig::ITEMS,
    board::MODES,
    board::NUMBER_ITEMS,
    pci::ITEMS,
    performance::PERFORMANCE_ITEMS,
    memory::MEMORY_ITEMS,
    utilization::UTILIZATION_ITEMS,
    ecc::ECC_ITEMS,
    repairs::REPAIR_ITEMS,
    temperature::TEMPERATURE_ITEMS,
    power::POWER_ITEMS,
    profiles::ITEMS,
    clocks::CLOCK_ITEMS,
    fabric::FABRIC,
    clocks::SUPPORTED,
    processes::RUNNING,
    processes::ACCOUNTED,
    fabric::CAPABILITIES,
];

pub(super) struct GpuBlock {
    /// The GPU's PCI bus ID, or the text to show instead.
    pub(super) bus_id: String,
    /// The text of all items.
    pub(super) items: String,
}

/// Writes the selected items of a GPU. Slow queries start first, on another thread, and the items
/// that need them are written last. A block therefore takes little longer than its slowest query.
pub(super) fn render_block(
    context: &Context<'_>,
    gpu: u32,
    form: OutputFormat,
    wanted: impl Fn(&Item) -> bool,
    write: impl Fn(&mut String, &Item, &Cursor<'_>),
) -> GpuBlock {
    let device = &Device::new(context, gpu);
    let at = Cursor::new(device, form);
    let items: Vec<_> = ITEMS
        .iter()
        .copied()
        .flatten()
        .filter(|item| wanted(item))
        .collect();
    let mut written = vec![String::new(); items.len()];
    thread::scope(|scope| {
        // Slow queries run one after another. Otherwise, each would measure the traffic that the
        // others cause.
        let ahead: Vec<_> = items.iter().flat_map(|item| item.ahead).collect();
        // If answers are in memory, starting a thread would take longer than running the queries.
        if !context.driver.is_quick() {
            scope.spawn(move || {
                for query in ahead {
                    drop(device.run_query(Subject::from_gpu(gpu), *query));
                }
            });
        }
        for waits in [false, true] {
            for (item, out) in items.iter().zip(&mut written) {
                if item.ahead.is_empty() != waits {
                    write(out, item, &at);
                }
            }
        }
    });
    GpuBlock {
        bus_id: remove_control_characters(&at.read_text(Query::BusId)),
        items: written.concat(),
    }
}
