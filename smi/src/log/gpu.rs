//! The block of a GPU, with all items in their order.

use std::thread;

use gpumon_probe::vendor::nvml::query::{Query, Subject};

use super::{
    board, clocks,
    cursor::{Cursor, Form},
    device::Device,
    ecc, fabric,
    item::Item,
    memory, mig, pci, performance, power, processes, profiles, repairs, temperature,
    text::plain,
    utilization, vgpu,
};
use crate::Context;

pub(super) static ITEMS: &[&[Item]] = &[
    board::NAMES,
    vgpu::CAPABILITIES,
    mig::ITEMS,
    board::MODES,
    board::NUMBERS,
    pci::ITEMS,
    performance::ITEMS,
    memory::ITEMS,
    utilization::ITEMS,
    ecc::ITEMS,
    repairs::ITEMS,
    temperature::ITEMS,
    power::ITEMS,
    profiles::ITEMS,
    clocks::ITEMS,
    fabric::FABRIC,
    clocks::SUPPORTED,
    processes::RUNNING,
    processes::ACCOUNTED,
    fabric::CAPABILITIES,
];

pub(super) struct Block {
    /// The PCI bus ID, or the text to show instead.
    pub(super) bus_id: String,
    /// The text of all items.
    pub(super) items: String,
}

/// Writes the selected items of a GPU. Slow queries start first, on another thread, and items that
/// need them are written last, so that a block takes little longer than its slowest query.
pub(super) fn block(
    context: &Context<'_>,
    gpu: u32,
    form: Form,
    wanted: impl Fn(&Item) -> bool,
    write: impl Fn(&mut String, &Item, &Cursor<'_>),
) -> Block {
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
        // Slow queries run one after another, because each would measure the traffic of the others.
        let ahead: Vec<_> = items.iter().flat_map(|item| item.ahead).collect();
        // If answers are in memory, a thread would be slower than asking.
        if !context.driver.is_quick() {
            scope.spawn(move || {
                for query in ahead {
                    drop(device.ask(Subject::gpu(gpu), *query));
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
    Block {
        bus_id: plain(&at.text(Query::BusId)),
        items: written.concat(),
    }
}
