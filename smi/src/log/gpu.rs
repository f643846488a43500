//! A GPU's block: all definitions in their order.

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
    /// Its place on the bus, or the words that stand for it.
    pub(super) bus_id: String,
    /// The items, one after another.
    pub(super) items: String,
}

/// Writes those items of a GPU that are wanted. Queries that wait are asked from the start on
/// threads of their own, and the items that need them are written last, so that a block takes
/// little longer than the longest of them.
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
        // One after the other: what one of them does would be counted by the other.
        let ahead: Vec<_> = items.iter().flat_map(|item| item.ahead).collect();
        // An answer from memory takes less time than a thread.
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
