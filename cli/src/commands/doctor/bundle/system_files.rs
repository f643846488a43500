//! The files from which GPUs other than NVIDIA's are read. `GPUMON_SYSFS` and `GPUMON_PROCFS` read
//! their copies in the archive as if they were the machine's.

use gpumon_probe::vendor::{FileContent, FilePart, record_files};

use super::{super::machine::Machine, Content, File, scrub::Scrubber};
use crate::json_text::NameKind;

/// Returns the files of the machine, in which IDs of GPUs are replaced.
pub(super) fn read(machine: &Machine, scrubber: &mut Scrubber) -> Vec<File> {
    let files = record_files(machine.roots()).into_iter();
    let copy = files.filter_map(|file| {
        let content = match file.content {
            FileContent::Link(target) => Content::Link(target),
            FileContent::Parts(parts) => {
                let bytes = parts.into_iter().flat_map(|part| match part {
                    FilePart::Plain(bytes) => bytes,
                    FilePart::Id(id) => replace(scrubber, NameKind::Id, &id),
                    FilePart::Serial(serial) => replace(scrubber, NameKind::Serial, &serial),
                });
                Content::Bytes(bytes.collect())
            }
        };
        let name = file.path.to_str()?.to_owned();
        Some(File { name, content })
    });
    copy.collect()
}

/// Returns the placeholder of a name, which is looked for in all other files too.
fn replace(scrubber: &mut Scrubber, kind: NameKind, name: &str) -> Vec<u8> {
    scrubber.add_name(kind, name);
    scrubber.name(kind, name).into_bytes()
}
