//! The position in the log at which a value is read: the GPU, the output format, and the numbers of
//! groups and rows.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, Subject};

use super::{
    device::Device,
    format::{ABSENT, format_code, format_or_reason},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    Text,
    Xml,
}

pub(super) struct Cursor<'a> {
    pub(super) device: &'a Device<'a>,
    pub(super) form: OutputFormat,
    numbers: Vec<i128>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(device: &'a Device<'a>, form: OutputFormat) -> Self {
        Self {
            device,
            form,
            numbers: Vec::new(),
        }
    }

    /// Returns a position inside a group or a row, which adds `numbers` to this position.
    pub(super) fn with_added_numbers(&self, numbers: &[i128]) -> Cursor<'a> {
        Cursor {
            device: self.device,
            form: self.form,
            numbers: [&self.numbers, numbers].concat(),
        }
    }

    /// Returns one of the position's numbers, starting with the outermost group, or 0 if there is
    /// no such number.
    pub(super) fn number_at(&self, place: usize) -> i128 {
        self.numbers.get(place).copied().unwrap_or(0)
    }

    pub(super) fn has_number(&self, place: usize) -> bool {
        place < self.numbers.len()
    }

    /// Returns one of the position's numbers, for use as a query argument.
    pub(super) fn argument_at(&self, place: usize) -> u32 {
        u32::try_from(self.number_at(place)).unwrap_or_default()
    }

    pub(super) fn run_query(&self, query: Query) -> Answer {
        self.device
            .run_query(Subject::from_gpu(self.device.gpu), query)
    }

    /// Returns a number from the answer to `query`. The error is the text to show instead.
    pub(super) fn read_number(&self, query: Query, place: usize) -> Result<i128, String> {
        read_answer_number(&self.run_query(query), place)
    }

    /// Returns a formatted number from the answer to `query`, or the text to show instead.
    pub(super) fn read_formatted(
        &self,
        query: Query,
        place: usize,
        format: fn(i128) -> String,
    ) -> String {
        format_or_reason(self.read_number(query, place), format)
    }

    /// Like `read_formatted`, but queries the MIG device whose index is the position's first
    /// number.
    pub(super) fn read_formatted_part(
        &self,
        query: Query,
        place: usize,
        format: fn(i128) -> String,
    ) -> String {
        let part = Subject::from_mig(self.device.gpu, self.argument_at(0));
        format_or_reason(
            read_answer_number(&self.device.run_query(part, query), place),
            format,
        )
    }

    /// Returns the text in the answer to `query`, or the text to show instead.
    pub(super) fn read_text(&self, query: Query) -> String {
        match self.run_query(query) {
            Ok(value) => value.text().unwrap_or(ABSENT).to_owned(),
            Err(code) => format_code(code),
        }
    }

    pub(super) fn read_field(&self, id: u32, scope: u32) -> Result<i128, String> {
        read_answer_number(&self.run_field_query(id, scope), 0)
    }

    /// Returns a field's value, which may have a fractional part. The error is the text to show
    /// instead.
    pub(super) fn read_real_field(&self, id: u32, scope: u32) -> Result<f64, String> {
        self.run_field_query(id, scope)
            .map_err(format_code)?
            .first_as_float()
            .ok_or_else(|| ABSENT.to_owned())
    }

    /// Queries a field. If the driver does not know the field, it returns “invalid argument”, which
    /// is changed to “not supported”.
    fn run_field_query(&self, id: u32, scope: u32) -> Answer {
        let id = self
            .device
            .find_field_number(id)
            .ok_or(Code::NOT_SUPPORTED)?;
        self.run_query(Query::Field(id, scope)).map_err(|code| {
            if code == Code::INVALID_ARGUMENT {
                Code::NOT_SUPPORTED
            } else {
                code
            }
        })
    }

    pub(super) fn read_formatted_field(
        &self,
        id: u32,
        scope: u32,
        format: fn(i128) -> String,
    ) -> String {
        format_or_reason(self.read_field(id, scope), format)
    }
}

fn read_answer_number(answer: &Answer, place: usize) -> Result<i128, String> {
    match answer {
        Ok(value) => value.number_at(place).ok_or_else(|| ABSENT.to_owned()),
        Err(code) => Err(format_code(*code)),
    }
}
