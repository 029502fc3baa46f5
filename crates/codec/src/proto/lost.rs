//! Names of the fields on the wire that the table does not know.

use super::DEPTH;
use super::error::{Step, path_text};
use super::value::{Parts, map_entry};
use super::wire::{self, Fault, Wire};
use crate::envelope;
use crate::json::noting::NAMES_MAX;
use crate::schema::{self, Field, Message, Type};

/// The paths of the first unknown fields of `message`, each ending in `#` and the field's number. Each once.
///
/// What is malformed ends the search with what is known by then: a decoder reports it better.
pub(crate) fn unknown_fields(bytes: &[u8], message: &'static Message) -> Vec<String> {
    let mut search = Search { steps: Vec::new(), found: Vec::new() };
    let _: Result<(), Fault> = search.message(bytes, message);
    search.found
}

struct Search {
    steps: Vec<Step>,
    found: Vec<String>,
}

impl Search {
    fn message(&mut self, mut rest: &[u8], message: &'static Message) -> Result<(), Fault> {
        if self.steps.len() > usize::from(DEPTH) {
            return Ok(());
        }
        // How many elements of each list came before.
        let mut counts = [0_usize; 64];
        while !rest.is_empty() && self.found.len() < NAMES_MAX {
            let (number, wire) = wire::entry(&mut rest)?;
            let Some(position) = message.position(number) else {
                self.note(number);
                continue;
            };
            let Wire::Bytes(bytes) = wire else { continue };
            self.field(bytes, &message.fields()[position], &mut counts[position])?;
        }
        Ok(())
    }

    fn note(&mut self, number: usize) {
        let parent = path_text(self.steps.iter());
        let dot = if parent.is_empty() { "" } else { "." };
        let path = format!("{parent}{dot}#{number}");
        if !self.found.contains(&path) {
            self.found.push(path);
        }
    }

    fn field(
        &mut self,
        bytes: &[u8],
        field: &'static Field,
        count: &mut usize,
    ) -> Result<(), Fault> {
        let before = self.steps.len();
        if !field.is_inline() {
            self.steps.push(Step::Field(field.name()));
        }
        let mut value = bytes;
        if field.is_map() {
            let Ok((key, Wire::Bytes(entry))) = map_entry(field.ty(), Wire::Bytes(bytes)) else {
                self.steps.truncate(before);
                return Ok(());
            };
            self.steps.push(Step::Key(String::from_utf8_lossy(key).into_owned()));
            value = entry;
        } else if field.is_repeated() {
            self.steps.push(Step::Index(*count));
            *count += 1;
        }
        let result = self.value(value, field.ty());
        self.steps.truncate(before);
        result
    }

    fn value(&mut self, bytes: &[u8], ty: Type) -> Result<(), Fault> {
        let schemas: &[usize] = match ty {
            Type::Nested(_) => {
                return ty.message().map_or(Ok(()), |message| self.message(bytes, message));
            }
            Type::Json => return self.embedded(bytes),
            Type::SchemaOrBool => &[2],
            Type::SchemaOrArray => &[1, 2],
            Type::SchemaOrStrings => &[1],
            _ => return Ok(()),
        };
        let mut rest = bytes;
        let mut index = 0;
        while !rest.is_empty() {
            let (number, wire) = wire::entry(&mut rest)?;
            let Wire::Bytes(schema) = wire else { continue };
            if !schemas.contains(&number) {
                continue;
            }
            // JSON shows the second field of this one as a list.
            let listed = ty == Type::SchemaOrArray && number == 2;
            if listed {
                self.steps.push(Step::Index(index));
                index += 1;
            }
            let result = self.message(schema, schema::json_schema());
            if listed {
                self.steps.pop();
            }
            result?;
        }
        Ok(())
    }

    /// A whole object where JSON could stand.
    fn embedded(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let parts = Parts::read(bytes, Type::Json.into())?;
        let Some(Ok(inner)) = parts.bytes(1).map(envelope::open) else { return Ok(()) };
        match schema::kind_of(inner.api_version, inner.kind) {
            Some(message) => self.message(inner.message, message),
            None => Ok(()),
        }
    }
}
