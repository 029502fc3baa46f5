//! Values of many objects for many indexes, computed before the store is locked.

use std::ops::Range;

use super::{Index, IndexProblem};
use crate::Stored;

/// The values, in one text: a batch makes a handful of allocations, not one for each value.
#[derive(Debug, Default)]
pub(crate) struct Extracted {
    text: String,
    values: Vec<Range<usize>>,
    /// One cell for each object and index, objects outermost: a range of `values`, or none after a failure.
    cells: Vec<Option<Range<usize>>>,
    indexes: usize,
}

impl Extracted {
    /// The values of `objects`, and what failed.
    pub(crate) fn of<'a, T: Stored>(
        indexes: &[Index<T>],
        objects: impl IntoIterator<Item = &'a T>,
    ) -> (Self, Vec<IndexProblem>) {
        let mut extracted = Self { indexes: indexes.len(), ..Self::default() };
        let mut problems = Vec::new();
        for object in objects {
            for index in indexes {
                let start = extracted.values.len();
                let (text, values) = (&mut extracted.text, &mut extracted.values);
                let result = index.values(object, &mut |value| {
                    if values[start..].iter().any(|known| text[known.clone()] == *value) {
                        return;
                    }
                    let at = text.len();
                    text.push_str(value);
                    values.push(at..text.len());
                });
                match result {
                    Ok(()) => extracted.cells.push(Some(start..extracted.values.len())),
                    Err(failure) => {
                        extracted.values.truncate(start);
                        extracted.cells.push(None);
                        let index = index.name().clone();
                        problems.push(IndexProblem { index, key: object.key(), failure });
                    }
                }
            }
        }
        (extracted, problems)
    }

    /// Values of one object for one index, each once; none after a failure.
    pub(crate) fn get(
        &self,
        object: usize,
        index: usize,
    ) -> Option<impl ExactSizeIterator<Item = &str>> {
        let cell = self.cells[object * self.indexes + index].clone()?;
        Some(self.values[cell].iter().map(|value| &self.text[value.clone()]))
    }
}
