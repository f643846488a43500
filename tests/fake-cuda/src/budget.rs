//! The memory of each device that this process can use. Other processes may use a part of it.

use fake_gpu_state::Account;

use crate::scenario::Scenario;

pub(crate) struct Budget {
    account: Account,
    uuids: Vec<String>,
    total_bytes: u64,
}

impl Budget {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            account: Account::open(fake_gpu_state::find_folder()),
            uuids: (0..scenario.devices)
                .map(|device| scenario.uuid_text(device))
                .collect(),
            total_bytes: scenario.memory_mib << 20,
        }
    }

    /// Takes memory if there is enough. Returns whether there was.
    pub(crate) fn try_take_memory(&mut self, device: u32, bytes: u64) -> bool {
        self.account
            .take_memory(&self.uuids[device as usize], bytes, self.total_bytes)
    }

    pub(crate) fn release(&mut self, device: u32, bytes: u64) {
        self.account
            .give_back_memory(&self.uuids[device as usize], bytes);
    }

    pub(crate) fn free_bytes(&self, device: u32) -> u64 {
        self.account
            .free_bytes(&self.uuids[device as usize], self.total_bytes)
    }
}
