//! The energy counter: the one reading that has to add up.

use std::sync::{Mutex, PoisonError};

use super::World;

/// The counter moves once in this time, as the real one does.
const TICK_MS: u64 = 100;
/// In a timeline that has run for long, only so much of the past is added up, since adding takes time.
const PAST_MS: u64 = 3_600_000;

/// An energy counter for each GPU of a world.
#[derive(Debug)]
pub struct Meters(Vec<Mutex<Meter>>);

#[derive(Debug)]
struct Meter {
    counted_until_ms: u64,
    joules: f64,
}

impl Meters {
    /// Counters that start at 0 with the timeline, or an hour before `elapsed_ms`, whichever is later.
    pub fn new(gpus: u32, elapsed_ms: u64) -> Self {
        let from_ms = elapsed_ms.saturating_sub(PAST_MS) / TICK_MS * TICK_MS;
        Self((0..gpus).map(|_| Mutex::new(Meter { counted_until_ms: from_ms, joules: 0.0 })).collect())
    }

    /// What a GPU has used until `elapsed_ms`, in millijoules.
    pub fn millijoules(&self, world: &World, gpu: u32, elapsed_ms: u64) -> u64 {
        let mut meter = self.0[gpu as usize].lock().unwrap_or_else(PoisonError::into_inner);
        while meter.counted_until_ms + TICK_MS <= elapsed_ms {
            meter.counted_until_ms += TICK_MS;
            meter.joules += world.power_watts(gpu, meter.counted_until_ms) * TICK_MS as f64 / 1000.0;
        }
        (meter.joules * 1000.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sim::Scenario;

    #[test]
    fn the_counter_is_the_integral_of_the_power() {
        let world = World::new(Scenario::from_toml("[[gpu]]\nindex = 0\npower_watts = 500\n", "test").unwrap());
        let meters = Meters::new(1, 0);
        let begun = meters.millijoules(&world, 0, 1_000);
        let used = meters.millijoules(&world, 0, 11_000) - begun;
        assert!((used as f64 / 5_000_000.0 - 1.0).abs() < 0.001, "{used} mJ in 10 s of 500 W");
        assert_eq!(meters.millijoules(&world, 0, 11_099), meters.millijoules(&world, 0, 11_000), "it moves in steps");
    }
}
