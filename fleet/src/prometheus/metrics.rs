//! The metric names of gpumon and dcgm-exporter, from the field catalog.

use std::sync::LazyLock;

use gpumon_probe::model::fields::{Field, GPU_FIELDS};

pub(super) use crate::model::{
    MEMORY_TOTAL, MEMORY_USED, POWER, POWER_LIMIT, TEMPERATURE, UTILIZATION,
};

/// A family of metric names. If several families contain the same reading, the first of them is
/// used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Family {
    /// The metric names of gpumon.
    Own,
    /// The metric names of dcgm-exporter 4.9 and later.
    Renamed,
    /// The metric names of dcgm-exporter up to 4.8.
    Old,
}

/// A set of metric families.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Families {
    pub(super) own: bool,
    pub(super) renamed: bool,
    pub(super) old: bool,
}

/// A reading, and its metric name in each family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) id: &'static str,
    names: [&'static str; 3],
    /// The factor that converts each family's values into the reading's unit.
    factors: [f64; 3],
}

/// The field for free memory, which dcgm-exporter exports instead of the total memory.
pub(super) const MEMORY_FREE: &str = "memory.free_bytes";
pub(super) const MEMORY_RESERVED: &str = "memory.reserved_bytes";

static NAMED_READINGS: LazyLock<Vec<Reading>> =
    LazyLock::new(|| GPU_FIELDS.iter().filter_map(Reading::new).collect());

impl Family {
    const ALL: [Self; 3] = [Self::Own, Self::Renamed, Self::Old];

    /// Returns `true` for dcgm-exporter's families.
    pub(super) fn is_dcgm(self) -> bool {
        self != Self::Own
    }
}

impl Families {
    pub(super) const ALL: Self = Self {
        own: true,
        renamed: true,
        old: true,
    };

    pub(super) fn contains(self, family: Family) -> bool {
        match family {
            Family::Own => self.own,
            Family::Renamed => self.renamed,
            Family::Old => self.old,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }

    pub(super) fn has_dcgm(self) -> bool {
        self.renamed || self.old
    }

    pub(super) fn insert(&mut self, family: Family) {
        match family {
            Family::Own => self.own = true,
            Family::Renamed => self.renamed = true,
            Family::Old => self.old = true,
        }
    }
}

impl Reading {
    /// Returns the reading for the field `id`, or `None` if the field has no metric.
    pub(super) fn find(id: &str) -> Option<Self> {
        NAMED_READINGS
            .iter()
            .find(|reading| reading.id == id)
            .copied()
    }

    fn new(field: &Field) -> Option<Self> {
        let own = field.prometheus?;
        // DCGM counts whole mebibytes, so the conversion of a small value would lose precision. The
        // factors are therefore computed from a large value.
        let much = f64::from(1 << 30);
        let (renamed, old, factors) = field.dcgm.map_or(("", "", [1.0; 2]), |dcgm| {
            let factors = [
                dcgm.to_renamed_unit(field.unit, much),
                dcgm.to_dcgm_unit(field.unit, much),
            ]
            .map(|it| much / it);
            (dcgm.renamed, dcgm.name, factors)
        });
        let names = [own, renamed, if old == renamed { "" } else { old }];
        Some(Self {
            id: field.id,
            names,
            factors: [much / field.unit.to_base_unit(much), factors[0], factors[1]],
        })
    }

    /// Returns the reading's metric names in `families`.
    pub(super) fn list_metric_names(&self, families: Families) -> Vec<&'static str> {
        let named = Family::ALL.into_iter().zip(self.names);
        named
            .filter(|(family, name)| families.contains(*family) && !name.is_empty())
            .map(|(_, name)| name)
            .collect()
    }

    /// Returns the family that contains the metric `name`, and the factor for its values. Returns
    /// `None` if the metric belongs to another reading.
    pub(super) fn find_family_and_factor(&self, name: &str) -> Option<(Family, f64)> {
        let at = self.names.iter().position(|known| *known == name)?;
        Some((Family::ALL[at], self.factors[at]))
    }
}

/// Returns the metric names of all readings in `ids`.
pub(super) fn list_metric_names_of_readings(ids: &[&str], families: Families) -> Vec<&'static str> {
    ids.iter()
        .filter_map(|id| Reading::find(id))
        .flat_map(|reading| reading.list_metric_names(families))
        .collect()
}

/// Returns the reading that the metric `name` belongs to, the metric's family, and the factor for
/// its values.
pub(super) fn find_reading_by_metric(
    ids: &[&str],
    name: &str,
) -> Option<(&'static str, Family, f64)> {
    ids.iter()
        .filter_map(|id| Reading::find(id))
        .find_map(|reading| {
            let (family, factor) = reading.find_family_and_factor(name)?;
            Some((reading.id, family, factor))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_has_metric_names_and_conversion_factors() {
        for id in crate::model::READINGS
            .into_iter()
            .chain([MEMORY_FREE, MEMORY_RESERVED])
        {
            assert_eq!(
                Reading::find(id)
                    .unwrap()
                    .list_metric_names(Families::ALL)
                    .len(),
                3,
                "{id}"
            );
        }
        let value = |id: &str, name: &str| Reading::find(id).unwrap().find_family_and_factor(name);
        assert_eq!(
            value(UTILIZATION, "gpumon_gpu_utilization_ratio"),
            Some((Family::Own, 100.0))
        );
        assert_eq!(
            value(UTILIZATION, "DCGM_FI_DEV_GPU_UTIL"),
            Some((Family::Old, 1.0))
        );
        assert_eq!(
            value(UTILIZATION, "DCGM_FI_DEV_GPU_UTIL_RATIO"),
            Some((Family::Renamed, 100.0))
        );
        assert_eq!(
            value(MEMORY_USED, "DCGM_FI_DEV_FB_USED"),
            Some((Family::Old, 1_048_576.0))
        );
        assert_eq!(
            value(MEMORY_USED, "DCGM_FI_DEV_FB_USED_BYTES"),
            Some((Family::Renamed, 1.0))
        );
        assert_eq!(value(POWER, "DCGM_FI_DEV_GPU_UTIL"), None);
        let own = Families {
            own: true,
            ..Families::default()
        };
        assert_eq!(
            list_metric_names_of_readings(&[POWER, TEMPERATURE], own),
            ["gpumon_gpu_power_watts", "gpumon_gpu_temperature_celsius"]
        );
    }
}
