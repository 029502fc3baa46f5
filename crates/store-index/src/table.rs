//! The objects, in numbered slots that readers can share.

use std::sync::Arc;

use crate::StoreVersion;

/// Slots per chunk: the unit of copying when a reader still shares what the writer changes.
const CHUNK: usize = 128;

type Chunk<T> = Arc<[Option<T>]>;

/// The chunks, shared with readers until the writer changes them.
#[derive(Debug)]
pub(crate) struct Chunks<T>(Arc<Vec<Chunk<T>>>);

impl<T> Clone for Chunks<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Chunks<T> {
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        let slot = slot as usize;
        self.0.get(slot / CHUNK)?[slot % CHUNK].as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|chunk| chunk.iter().flatten())
    }

    /// The live slots with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &T)> {
        self.0.iter().enumerate().flat_map(|(number, chunk)| {
            chunk.iter().enumerate().filter_map(move |(offset, slot)| {
                Some((number_of(number * CHUNK + offset), slot.as_ref()?))
            })
        })
    }
}

fn number_of(slot: usize) -> u32 {
    u32::try_from(slot).expect("a store holds fewer than 2^32 objects")
}

/// Slots, and which of them are free. Free slots are used again before new ones are made.
#[derive(Debug)]
pub(crate) struct Table<T> {
    chunks: Chunks<T>,
    free: Vec<u32>,
    /// Slots ever used: all from here on are empty.
    used: u32,
    live: usize,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: Chunks(Arc::new(Vec::new())), free: Vec::new(), used: 0, live: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.chunks.get(slot)
    }

    pub(crate) fn share(&self) -> Chunks<T> {
        self.chunks.clone()
    }

    /// Bytes of the slots themselves, whether in use or not.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.0.capacity() * size_of::<Chunk<T>>()
            + self.chunks.0.len() * CHUNK * size_of::<Option<T>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<T: Clone> Table<T> {
    fn chunk_mut(&mut self, chunk: usize) -> &mut [Option<T>] {
        Arc::make_mut(&mut Arc::make_mut(&mut self.chunks.0)[chunk])
    }

    pub(crate) fn insert(&mut self, object: T) -> u32 {
        self.live += 1;
        let number = self.free.pop().unwrap_or_else(|| {
            let number = self.used;
            if number as usize == self.chunks.0.len() * CHUNK {
                let empty = std::iter::repeat_with(|| None).take(CHUNK).collect();
                Arc::make_mut(&mut self.chunks.0).push(empty);
            }
            self.used = number.checked_add(1).expect("a store holds fewer than 2^32 objects");
            number
        });
        self.chunk_mut(number as usize / CHUNK)[number as usize % CHUNK] = Some(object);
        number
    }

    /// Puts another object into a live slot and returns the one that was there.
    pub(crate) fn exchange(&mut self, slot: u32, object: T) -> Option<T> {
        let entry = self.chunk_mut(slot as usize / CHUNK)[slot as usize % CHUNK].as_mut();
        entry.map(|entry| std::mem::replace(entry, object))
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<T> {
        let taken = self.chunk_mut(slot as usize / CHUNK)[slot as usize % CHUNK].take();
        if taken.is_some() {
            self.live -= 1;
            self.free.push(slot);
        }
        taken
    }
}

/// All objects of a store at one instant. Cheap to make, and later changes do not touch it.
///
/// While it lives, the writer copies each chunk of slots that it changes: keep it for a computation, not for ever.
#[derive(Debug)]
pub struct Frozen<T> {
    pub(crate) chunks: Chunks<T>,
    pub(crate) len: usize,
    pub(crate) version: StoreVersion,
}

impl<T> Frozen<T> {
    /// Number of objects.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The store's version at that instant.
    pub fn version(&self) -> &StoreVersion {
        &self.version
    }

    /// The objects, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter()
    }
}
