//! Calculates the energy of a GPU over a time window from the board's energy counter.

/// A meter that sums the growth of a GPU's energy counter.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnergyMeter {
    /// The newest reading in joules, and its time.
    newest: Option<(f64, u64)>,
    joules: f64,
    time_ms: u64,
}

impl EnergyMeter {
    /// Adds a reading of the counter. If the counter was reset since the previous reading, as when
    /// the driver is loaded, that time is not counted.
    pub fn add(&mut self, joules: f64, at_ms: u64) {
        if let Some((before, before_ms)) = self.newest.replace((joules, at_ms))
            && joules >= before
            && at_ms >= before_ms
        {
            self.joules += joules - before;
            self.time_ms += at_ms - before_ms;
        }
    }

    /// Excludes the time until the next reading.
    pub fn interrupt(&mut self) {
        self.newest = None;
    }

    /// Returns the energy in joules, and the time that it covers in milliseconds.
    pub fn total_energy_and_time(&self) -> (f64, u64) {
        (self.joules, self.time_ms)
    }

    /// Returns the energy over a longer time, in joules. For the time without readings, the energy
    /// is estimated from the mean power. Returns `None` if there is neither a reading nor a mean
    /// power.
    pub fn extrapolate_energy(&self, time_ms: u64, mean_watts: Option<f64>) -> Option<f64> {
        let uncounted_s = time_ms.saturating_sub(self.time_ms) as f64 / 1000.0;
        let estimated = mean_watts.map(|watts| watts * uncounted_s);
        if self.time_ms == 0 {
            return estimated;
        }
        Some(self.joules + estimated.unwrap_or(0.0))
    }
}

impl FromIterator<(f64, u64)> for EnergyMeter {
    fn from_iter<I: IntoIterator<Item = (f64, u64)>>(readings: I) -> Self {
        let mut meter = Self::default();
        for (joules, at_ms) in readings {
            meter.add(joules, at_ms);
        }
        meter
    }
}
