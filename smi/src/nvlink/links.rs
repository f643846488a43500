//! The NVLinks of a GPU: their number, and the links that were selected.

use gpumon_probe::vendor::nvml::query::{Code, Query, QueryBackend, Subject, Value};

/// The field IDs `NVML_FI_DEV_NVLINK_LINK_COUNT` and `NVML_FI_DEV_NVLINK_GET_STATE`.
const COUNT: u32 = 91;
const STATE: u32 = 165;

pub(super) struct Links<'a> {
    driver: &'a dyn QueryBackend,
    subject: Subject,
    /// The selected links; `None` if the requested link does not exist.
    chosen: Option<Vec<u32>>,
}

impl<'a> Links<'a> {
    /// Returns the number of links of a GPU. `None` if the GPU has no NVLink; 0 for a lost GPU,
    /// which may have links.
    pub(super) fn count(driver: &dyn QueryBackend, gpu: u32) -> Option<u32> {
        match driver.about(Subject::gpu(gpu), Query::Field(COUNT, 0)) {
            Ok(answer) => answer
                .at(0)
                .and_then(|count| u32::try_from(count).ok())
                .filter(|count| *count > 0),
            Err(Code::GPU_IS_LOST) => Some(0),
            Err(_) => None,
        }
    }

    /// Selects all links, or the requested one. A negative number selects all links.
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

    /// The selected links; `None` if the requested link does not exist.
    pub(super) fn chosen(&self) -> Option<&[u32]> {
        self.chosen.as_deref()
    }

    pub(super) fn active(&self, link: u32) -> bool {
        self.field(STATE, link) == Some(1)
    }

    pub(super) fn field(&self, field: u32, link: u32) -> Option<i128> {
        self.ask(Query::Field(field, link))?.at(0)
    }

    pub(super) fn ask(&self, query: Query) -> Option<Value> {
        self.driver.about(self.subject, query).ok()
    }
}
