//! The machine around the GPUs.

use gpumon_probe::model::fields::HOST_FIELDS;

use super::{scrape::Scrape, text::Page};

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for field in HOST_FIELDS {
        let Some(name) = field.prometheus else { continue };
        let value = scrape.sample.and_then(|sample| field.access.value(&sample.host));
        page.family(name, field.kind.into(), field.help).add([], value.map(|value| field.unit.base(value)));
    }
}
