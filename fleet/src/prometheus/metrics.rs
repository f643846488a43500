//! Names of metrics: those of gpumon and those of dcgm-exporter, from the catalog of fields.

use std::sync::LazyLock;

use gpumon_probe::model::fields::{Field, GPU_FIELDS};

pub(super) use crate::model::{
    MEMORY_TOTAL, MEMORY_USED, POWER, POWER_LIMIT, TEMPERATURE, UTILIZATION,
};

/// A family of metric names. If several families report the same reading, the first one is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Family {
    /// The names of gpumon.
    Own,
    /// The names of dcgm-exporter since 4.9.
    Renamed,
    /// The names of dcgm-exporter until 4.8.
    Old,
}

/// A set of families.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Families {
    pub(super) own: bool,
    pub(super) renamed: bool,
    pub(super) old: bool,
}

/// A reading with its name in each family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) id: &'static str,
    names: [&'static str; 3],
    /// The factor by which a value under each name is multiplied.
    factors: [f64; 3],
}

/// The field that dcgm-exporter reports if it does not report the total memory.
pub(super) const MEMORY_FREE: &str = "memory.free_bytes";
pub(super) const MEMORY_RESERVED: &str = "memory.reserved_bytes";

static NAMED: LazyLock<Vec<Reading>> =
    LazyLock::new(|| GPU_FIELDS.iter().filter_map(Reading::new).collect());

impl Family {
    const ALL: [Self; 3] = [Self::Own, Self::Renamed, Self::Old];

    /// Returns `true` for the families of dcgm-exporter.
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

    pub(super) fn has(self, family: Family) -> bool {
        match family {
            Family::Own => self.own,
            Family::Renamed => self.renamed,
            Family::Old => self.old,
        }
    }

    pub(super) fn is_none(self) -> bool {
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
    /// Returns the reading of a field, or `None` if it has no metric.
    pub(super) fn of(id: &str) -> Option<Self> {
        NAMED.iter().find(|reading| reading.id == id).copied()
    }

    fn new(field: &Field) -> Option<Self> {
        let own = field.prometheus?;
        // The value is so large that no precision is lost although DCGM counts whole mebibytes.
        let much = f64::from(1 << 30);
        let (renamed, old, factors) = field.dcgm.map_or(("", "", [1.0; 2]), |dcgm| {
            let factors = [
                dcgm.renamed_value(field.unit, much),
                dcgm.value(field.unit, much),
            ]
            .map(|it| much / it);
            (dcgm.renamed, dcgm.name, factors)
        });
        let names = [own, renamed, if old == renamed { "" } else { old }];
        Some(Self {
            id: field.id,
            names,
            factors: [much / field.unit.base(much), factors[0], factors[1]],
        })
    }

    /// Returns the names in these families.
    pub(super) fn names(&self, families: Families) -> Vec<&'static str> {
        let named = Family::ALL.into_iter().zip(self.names);
        named
            .filter(|(family, name)| families.has(*family) && !name.is_empty())
            .map(|(_, name)| name)
            .collect()
    }

    /// Returns the family of a name, and its factor. Returns `None` if the name belongs to another
    /// reading.
    pub(super) fn family(&self, name: &str) -> Option<(Family, f64)> {
        let at = self.names.iter().position(|known| *known == name)?;
        Some((Family::ALL[at], self.factors[at]))
    }
}

/// Returns the names of all these readings.
pub(super) fn names(ids: &[&str], families: Families) -> Vec<&'static str> {
    ids.iter()
        .filter_map(|id| Reading::of(id))
        .flat_map(|reading| reading.names(families))
        .collect()
}

/// Returns the reading with this name, the family of the name, and its factor.
pub(super) fn by_name(ids: &[&str], name: &str) -> Option<(&'static str, Family, f64)> {
    ids.iter()
        .filter_map(|id| Reading::of(id))
        .find_map(|reading| {
            let (family, factor) = reading.family(name)?;
            Some((reading.id, family, factor))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_has_its_names_and_units() {
        for id in crate::model::READINGS
            .into_iter()
            .chain([MEMORY_FREE, MEMORY_RESERVED])
        {
            assert_eq!(
                Reading::of(id).unwrap().names(Families::ALL).len(),
                3,
                "{id}"
            );
        }
        let value = |id: &str, name: &str| Reading::of(id).unwrap().family(name);
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
            names(&[POWER, TEMPERATURE], own),
            ["gpumon_gpu_power_watts", "gpumon_gpu_temperature_celsius"]
        );
    }
}
