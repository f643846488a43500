//! A GPU's NVLinks: how many there are, and which are selected.

use gpumon_probe::vendor::nvml::query::{Code, Query, QueryBackend, Subject, Value};

/// The field ID `NVML_FI_DEV_NVLINK_LINK_COUNT`. The constant below is
/// `NVML_FI_DEV_NVLINK_GET_STATE`.
const LINK_COUNT_FIELD: u32 = 91;
const LINK_STATE_FIELD: u32 = 165;

pub(super) struct Links<'a> {
    driver: &'a dyn QueryBackend,
    subject: Subject,
    /// The selected links, or `None` if the requested link does not exist.
    chosen: Option<Vec<u32>>,
}

impl<'a> Links<'a> {
    /// Returns a GPU's number of links, or `None` if the GPU has no NVLink. Returns 0 for a lost
    /// GPU, whose number of links is unknown.
    pub(super) fn count_links(driver: &dyn QueryBackend, gpu: u32) -> Option<u32> {
        match driver.answer_query(Subject::from_gpu(gpu), Query::Field(LINK_COUNT_FIELD, 0)) {
            Ok(answer) => answer
                .number_at(0)
                .and_then(|count| u32::try_from(count).ok())
                .filter(|count| *count > 0),
            Err(Code::GPU_IS_LOST) => Some(0),
            Err(_) => None,
        }
    }

    /// Selects the link with the given number, or all links if `link` is `None` or negative.
    pub(super) fn new(
        driver: &'a dyn QueryBackend,
        subject: Subject,
        count: u32,
        link: Option<i64>,
    ) -> Self {
        let chosen = match link.map(u32::try_from) {
            None | Some(Err(_)) => Some((0..count).collect()),
            Some(Ok(link)) if link < count => Some(vec![link]),
            Some(Ok(_)) => None,
        };
        Self {
            driver,
            subject,
            chosen,
        }
    }

    /// Returns the selected links, or `None` if the requested link does not exist.
    pub(super) fn selected_links(&self) -> Option<&[u32]> {
        self.chosen.as_deref()
    }

    pub(super) fn is_active(&self, link: u32) -> bool {
        self.read_field(LINK_STATE_FIELD, link) == Some(1)
    }

    pub(super) fn read_field(&self, field: u32, link: u32) -> Option<i128> {
        self.read_value(Query::Field(field, link))?.number_at(0)
    }

    pub(super) fn read_value(&self, query: Query) -> Option<Value> {
        self.driver.answer_query(self.subject, query).ok()
    }
}
