//! A sorted map that is cheap to copy: chunks behind reference counts.

use std::fmt;
use std::sync::Arc;

/// Entries in a chunk. A write that meets a shared chunk copies this many references; the spine has `len / CHUNK` entries.
const CHUNK: usize = 128;

type Chunk<T> = Vec<(Arc<str>, T)>;

/// A map from keys to values in the byte order of the keys.
///
/// A clone is one reference count, and is not changed by later writes to the original: those copy the chunk that they
/// touch and the spine of chunks, once, if a clone shares them.
pub struct Ordered<T> {
    /// No chunk is empty.
    chunks: Arc<Vec<Arc<Chunk<T>>>>,
    len: usize,
}

impl<T> Clone for Ordered<T> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self { chunks: Arc::default(), len: 0 }
    }
}

impl<T: fmt::Debug> fmt::Debug for Ordered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.chunks.iter().flat_map(|chunk| chunk.iter().cloned_keys()))
            .finish()
    }
}

/// For `Debug` alone: keys as strings beside borrowed values.
trait ClonedKeys<'a, T: 'a> {
    fn cloned_keys(self) -> impl Iterator<Item = (&'a str, &'a T)>;
}

impl<'a, T: 'a, I: Iterator<Item = &'a (Arc<str>, T)>> ClonedKeys<'a, T> for I {
    fn cloned_keys(self) -> impl Iterator<Item = (&'a str, &'a T)> {
        self.map(|(key, value)| (&**key, value))
    }
}

impl<T> Ordered<T> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&T> {
        let chunk = self.chunks.get(self.chunk_of(key))?;
        let at = chunk.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        Some(&chunk[at].1)
    }

    /// Index of the only chunk that may hold `key`; where it would go, if there is one.
    fn chunk_of(&self, key: &str) -> usize {
        self.chunks.partition_point(|chunk| *chunk[0].0 <= *key).saturating_sub(1)
    }

    /// How many keys start with `prefix` and are at or after `start`. It looks at chunks, not at entries.
    pub fn count_from(&self, prefix: &str, start: &str) -> usize {
        let from = if start > prefix { start } else { prefix };
        let before = |found: &dyn Fn(&str) -> bool| {
            let whole = self.chunks.partition_point(|chunk| found(&chunk[chunk.len() - 1].0));
            let part = self
                .chunks
                .get(whole)
                .map_or(0, |chunk| chunk.partition_point(|(key, _)| found(key)));
            self.chunks[..whole].iter().map(|chunk| chunk.len()).sum::<usize>() + part
        };
        let end = before(&|key| key < prefix || key.starts_with(prefix));
        end.saturating_sub(before(&|key| key < from))
    }

    /// An owned iterator over the entries whose key starts with `prefix` and is at or after `start`.
    ///
    /// It holds the map as it is now, and takes no memory for each entry.
    pub fn iter_from(&self, prefix: &str, start: &str) -> Iter<T> {
        let from = if start > prefix { start } else { prefix };
        let chunk = self.chunk_of(from);
        let at = self
            .chunks
            .get(chunk)
            .map_or(0, |chunk| chunk.partition_point(|(key, _)| **key < *from));
        Iter { chunks: self.chunks.clone(), chunk, at, prefix: prefix.into() }
    }
}

impl<T: Clone> Ordered<T> {
    /// Sets a value; gives the old one.
    pub fn insert(&mut self, key: Arc<str>, value: T) -> Option<T> {
        let index = self.chunk_of(&key);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(shared) = chunks.get_mut(index) else {
            chunks.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        };
        let chunk = Arc::make_mut(shared);
        let at = match chunk.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(at) => return Some(std::mem::replace(&mut chunk[at].1, value)),
            Err(at) => at,
        };
        self.len += 1;
        if chunk.len() < CHUNK {
            chunk.insert(at, (key, value));
        } else if at == CHUNK {
            // Keys that arrive in order fill their chunks.
            chunks.insert(index + 1, Arc::new(vec![(key, value)]));
        } else {
            let mut upper = chunk.split_off(CHUNK / 2);
            if at <= CHUNK / 2 {
                chunk.insert(at, (key, value));
            } else {
                upper.insert(at - CHUNK / 2, (key, value));
            }
            chunks.insert(index + 1, Arc::new(upper));
        }
        None
    }

    /// Removes a key; gives its value.
    pub fn remove(&mut self, key: &str) -> Option<T> {
        let index = self.chunk_of(key);
        let at = self.chunks.get(index)?.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[index]);
        let (_, value) = chunk.remove(at);
        if chunk.is_empty() {
            chunks.remove(index);
        }
        self.len -= 1;
        Some(value)
    }
}

/// An owned iterator; see [`Ordered::iter_from`].
pub struct Iter<T> {
    chunks: Arc<Vec<Arc<Chunk<T>>>>,
    chunk: usize,
    at: usize,
    prefix: Box<str>,
}

impl<T> Clone for Iter<T> {
    fn clone(&self) -> Self {
        Self {
            chunks: self.chunks.clone(),
            chunk: self.chunk,
            at: self.at,
            prefix: self.prefix.clone(),
        }
    }
}

impl<T> fmt::Debug for Iter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl<T: Clone> Iterator for Iter<T> {
    type Item = (Arc<str>, T);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let chunk = self.chunks.get(self.chunk)?;
            let Some((key, value)) = chunk.get(self.at) else {
                self.chunk += 1;
                self.at = 0;
                continue;
            };
            if !key.starts_with(&*self.prefix) {
                return None;
            }
            self.at += 1;
            return Some((key.clone(), value.clone()));
        }
    }
}
