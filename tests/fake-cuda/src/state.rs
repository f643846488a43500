//! The driver's state of one process.

use std::{
    alloc::{self, Layout},
    cell::Cell,
    collections::BTreeMap,
    fs,
    sync::{LazyLock, Mutex, MutexGuard},
};

use serde::Serialize;

use crate::{
    activity::Activities,
    budget::Budget,
    code::{Code, Outcome},
    pools::Pools,
    scenario::{Fault, FaultKind, Scenario},
    streams::Streams,
    virtual_memory::VirtualMemory,
};

/// The alignment of allocations, as in the real driver.
const ALIGNMENT: usize = 512;

/// The driver's resources and counters.
pub(crate) struct State {
    pub(crate) scenario: Scenario,
    pub(crate) is_initialized: bool,
    is_lost: bool,
    /// All allocations by address: the device of the allocation (`None` for host memory), and its
    /// size.
    memory: BTreeMap<usize, (Option<u32>, usize)>,
    budget: Budget,
    pub(crate) activities: Activities,
    pub(crate) streams: Streams,
    pub(crate) pools: Pools,
    pub(crate) virtual_memory: VirtualMemory,
    /// The number of kernels that were started so far, counted separately for each fault.
    counts: Vec<u64>,
    /// The number of arguments of each loaded kernel.
    pub(crate) parameters: BTreeMap<String, usize>,
    counters: Counters,
}

#[derive(Debug, Default, Serialize)]
struct Counters {
    kernels: u64,
    held_bytes: u64,
    most_bytes: u64,
    contexts: i64,
}

/// The effects of faults on a kernel that is started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FaultEffects {
    pub(crate) is_skipped: bool,
    pub(crate) is_flipped: bool,
    pub(crate) is_stuck: bool,
}

thread_local! {
    /// The device of the current context.
    static CURRENT_DEVICE: Cell<Option<u32>> = const { Cell::new(None) };
}

static STATE: LazyLock<Mutex<State>> =
    LazyLock::new(|| Mutex::new(State::new(Scenario::from_environment())));

/// Returns the locked state. Only one call at a time can use it.
pub(crate) fn state() -> MutexGuard<'static, State> {
    STATE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns the device of this thread's current context.
pub(crate) fn current_device() -> Outcome<u32> {
    CURRENT_DEVICE.get().ok_or(Code::INVALID_CONTEXT)
}

pub(crate) fn set_current_device(device: Option<u32>) {
    CURRENT_DEVICE.set(device);
}

impl State {
    fn new(scenario: Scenario) -> Self {
        let counts = vec![0; scenario.fault.len()];
        Self {
            budget: Budget::new(&scenario),
            activities: Activities::new(&scenario),
            scenario,
            is_initialized: false,
            is_lost: false,
            memory: BTreeMap::new(),
            streams: Streams::default(),
            pools: Pools::default(),
            virtual_memory: VirtualMemory::default(),
            counts,
            parameters: BTreeMap::new(),
            counters: Counters::default(),
        }
    }

    pub(crate) fn check_usable(&self) -> Outcome {
        match self {
            _ if self.scenario.stub => Err(Code::STUB_LIBRARY),
            _ if !self.is_initialized => Err(Code::NOT_INITIALIZED),
            _ if self.is_lost => Err(Code::DEVICE_UNAVAILABLE),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_device(&self, device: i32) -> Outcome<u32> {
        self.check_usable()?;
        u32::try_from(device)
            .ok()
            .filter(|device| *device < self.scenario.devices)
            .ok_or(Code::INVALID_DEVICE)
    }

    pub(crate) fn total_bytes(&self) -> usize {
        (self.scenario.memory_mib as usize) << 20
    }

    pub(crate) fn free_bytes(&self, device: u32) -> usize {
        self.budget.free_bytes(device) as usize
    }

    /// Takes memory from a device's budget, or from the host, which has no limit.
    pub(crate) fn take_memory(&mut self, device: Option<u32>, bytes: usize) -> Outcome {
        if device.is_some_and(|device| {
            self.has_out_of_memory_fault(device)
                || !self.budget.try_take_memory(device, bytes as u64)
        }) {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.counters.held_bytes += bytes as u64;
        self.counters.most_bytes = self.counters.most_bytes.max(self.counters.held_bytes);
        Ok(())
    }

    pub(crate) fn release_memory(&mut self, device: Option<u32>, bytes: usize) {
        if let Some(device) = device {
            self.budget.release(device, bytes as u64);
        }
        self.counters.held_bytes -= bytes as u64;
        self.write_counters();
    }

    /// Allocates memory of a device within its budget, or of the host.
    pub(crate) fn allocate(&mut self, device: Option<u32>, bytes: usize) -> Outcome<usize> {
        self.check_usable()?;
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.take_memory(device, bytes)?;
        self.allocate_block(device, bytes)
            .inspect_err(|_| self.release_memory(device, bytes))
    }

    pub(crate) fn free_allocation(&mut self, place: usize) -> Outcome {
        let (device, bytes) = self.free_block(place)?;
        self.release_memory(device, bytes);
        Ok(())
    }

    /// Allocates host memory that represents `bytes` of device memory. These bytes were already
    /// taken from the budget.
    pub(crate) fn allocate_block(&mut self, device: Option<u32>, bytes: usize) -> Outcome<usize> {
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| Code::INVALID_VALUE)?;
        // SAFETY: the size is not 0.
        let place = unsafe { alloc::alloc(layout) } as usize;
        if place == 0 {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.memory.insert(place, (device, bytes));
        Ok(place)
    }

    /// Frees an allocation. Returns its device and size.
    pub(crate) fn free_block(&mut self, place: usize) -> Outcome<(Option<u32>, usize)> {
        let (device, bytes) = self.memory.remove(&place).ok_or(Code::INVALID_VALUE)?;
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| Code::INVALID_VALUE)?;
        // SAFETY: the memory was allocated with this layout and is no longer in the table.
        unsafe { alloc::dealloc(place as *mut u8, layout) };
        Ok((device, bytes))
    }

    /// Checks that these bytes are in memory of a device.
    pub(crate) fn check_range(&self, address: u64, bytes: usize) -> Outcome {
        self.check_usable()?;
        let found = self.memory.range(..=address as usize).next_back();
        let is_inside = found.is_some_and(|(begin, (of, size))| {
            of.is_some()
                && (address as usize)
                    .checked_add(bytes)
                    .is_some_and(|end| end <= begin + size)
        });
        if is_inside
            || self
                .virtual_memory
                .is_range_accessible(address as usize, bytes)
        {
            Ok(())
        } else {
            Err(Code::INVALID_VALUE)
        }
    }

    /// Counts the start of a kernel, and returns the effects of faults on this kernel.
    pub(crate) fn count_launch_and_find_faults(&mut self, kernel: &str) -> Outcome<FaultEffects> {
        self.check_usable()?;
        let mut fate = FaultEffects::default();
        for (fault, count) in self.scenario.fault.iter().zip(&mut self.counts) {
            let is_meant = fault.kernel.as_deref().is_none_or(|name| name == kernel)
                && fault
                    .device
                    .is_none_or(|device| Some(device) == CURRENT_DEVICE.get());
            if !is_meant {
                continue;
            }
            *count += 1;
            let is_next =
                *count == fault.after_kernels + 1 || fault.lasting && *count > fault.after_kernels;
            fate.is_flipped |= is_next && fault.kind == FaultKind::Flip;
            fate.is_skipped |= is_next && fault.kind == FaultKind::Skip;
            fate.is_stuck |= is_next && fault.kind == FaultKind::Hang;
            self.is_lost |= is_next && fault.kind == FaultKind::Lost;
        }
        self.counters.kernels += 1;
        self.write_counters();
        self.check_usable()?;
        Ok(fate)
    }

    pub(crate) fn change_context_count(&mut self, change: i64) {
        self.counters.contexts += change;
        self.write_counters();
    }

    fn has_out_of_memory_fault(&self, device: u32) -> bool {
        let is_of = |fault: &Fault| {
            fault.kind == FaultKind::OutOfMemory && fault.device.is_none_or(|of| of == device)
        };
        self.scenario
            .fault
            .iter()
            .zip(&self.counts)
            .any(|(fault, count)| is_of(fault) && *count >= fault.after_kernels)
    }

    /// Writes the file atomically, because a test may read it at the same time.
    fn write_counters(&self) {
        let Some(path) = &self.scenario.counters else {
            return;
        };
        let text = serde_json::to_string(&self.counters).expect("numbers can be written");
        let part = path.with_extension("part");
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, path))
            .expect("the activity file must be writable");
    }
}
