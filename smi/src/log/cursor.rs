//! The position in the log for which a value is read: GPU, output format and row.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, Subject};

use super::{
    device::Device,
    format::{ABSENT, format_or_reason, word},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Xml,
}

pub(super) struct Cursor<'a> {
    pub(super) device: &'a Device<'a>,
    pub(super) form: Form,
    numbers: Vec<i128>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(device: &'a Device<'a>, form: Form) -> Self {
        Self {
            device,
            form,
            numbers: Vec::new(),
        }
    }

    /// Returns a position below this one, with more numbers from a group or a row.
    pub(super) fn below(&self, numbers: &[i128]) -> Cursor<'a> {
        Cursor {
            device: self.device,
            form: self.form,
            numbers: [&self.numbers, numbers].concat(),
        }
    }

    /// Returns a number by its position, starting with the outermost group; 0 if there is none.
    pub(super) fn nth(&self, place: usize) -> i128 {
        self.numbers.get(place).copied().unwrap_or(0)
    }

    pub(super) fn has_number(&self, place: usize) -> bool {
        place < self.numbers.len()
    }

    /// Returns [`Cursor::nth`] as an argument of a query.
    pub(super) fn argument(&self, place: usize) -> u32 {
        u32::try_from(self.nth(place)).unwrap_or_default()
    }

    pub(super) fn ask(&self, query: Query) -> Answer {
        self.device.ask(Subject::gpu(self.device.gpu), query)
    }

    /// Returns a number of the answer. The error is the text to show instead.
    pub(super) fn number(&self, query: Query, place: usize) -> Result<i128, String> {
        number(&self.ask(query), place)
    }

    /// Returns a formatted number of the answer, or the text to show instead.
    pub(super) fn format(&self, query: Query, place: usize, format: fn(i128) -> String) -> String {
        format_or_reason(self.number(query, place), format)
    }

    /// Returns a formatted number for the MIG device whose index is the first number of this
    /// position.
    pub(super) fn format_of_part(
        &self,
        query: Query,
        place: usize,
        format: fn(i128) -> String,
    ) -> String {
        let part = Subject::mig(self.device.gpu, self.argument(0));
        format_or_reason(number(&self.device.ask(part, query), place), format)
    }

    /// Returns the answer's text, or the text to show instead.
    pub(super) fn text(&self, query: Query) -> String {
        match self.ask(query) {
            Ok(value) => value.text().unwrap_or(ABSENT).to_owned(),
            Err(code) => word(code),
        }
    }

    pub(super) fn field(&self, id: u32, scope: u32) -> Result<i128, String> {
        number(&self.field_answer(id, scope), 0)
    }

    /// Returns the value of a field that may have a fraction. The error is the text to show
    /// instead.
    pub(super) fn real_field(&self, id: u32, scope: u32) -> Result<f64, String> {
        self.field_answer(id, scope)
            .map_err(word)?
            .real()
            .ok_or_else(|| ABSENT.to_owned())
    }

    /// Asks for a field. A driver that does not know the field answers “invalid argument”, which
    /// here becomes “not supported”.
    fn field_answer(&self, id: u32, scope: u32) -> Answer {
        let id = self.device.field(id).ok_or(Code::NOT_SUPPORTED)?;
        self.ask(Query::Field(id, scope)).map_err(|code| {
            if code == Code::INVALID_ARGUMENT {
                Code::NOT_SUPPORTED
            } else {
                code
            }
        })
    }

    pub(super) fn format_field(&self, id: u32, scope: u32, format: fn(i128) -> String) -> String {
        format_or_reason(self.field(id, scope), format)
    }
}

fn number(answer: &Answer, place: usize) -> Result<i128, String> {
    match answer {
        Ok(value) => value.at(place).ok_or_else(|| ABSENT.to_owned()),
        Err(code) => Err(word(*code)),
    }
}
