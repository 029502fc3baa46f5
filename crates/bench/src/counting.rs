//! An allocator that counts, while it is told to.

#![expect(unsafe_code, reason = "an allocator cannot be implemented without")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Passes everything on to another allocator. While [`counted`] runs, it counts what all threads ask for.
pub(crate) struct Counting<A>(pub(crate) A);

// Relaxed throughout: nothing but the counts themselves is read through them, by the thread that started the counting.
static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

/// What was asked for during [`counted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocated {
    /// Calls that gave memory, growth in place included.
    pub(crate) calls: u64,
    /// Bytes that they gave; growth counts with what it adds.
    pub(crate) bytes: u64,
    /// The most that was held at one time, of what was given during the count.
    pub(crate) peak: u64,
}

/// Counts the allocations of `work`. One count at a time.
pub(crate) fn counted<R>(work: impl FnOnce() -> R) -> (R, Allocated) {
    for counter in [&CALLS, &BYTES, &FREED, &PEAK] {
        counter.store(0, Ordering::Relaxed);
    }
    ON.store(true, Ordering::Relaxed);
    let result = work();
    ON.store(false, Ordering::Relaxed);
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    (result, Allocated { calls: read(&CALLS), bytes: read(&BYTES), peak: read(&PEAK) })
}

fn gave(bytes: usize) {
    if ON.load(Ordering::Relaxed) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        let given = BYTES.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        PEAK.fetch_max(given.saturating_sub(FREED.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}

fn took(bytes: usize) {
    if ON.load(Ordering::Relaxed) {
        FREED.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every method does what the inner allocator's method of the same name does, with the same arguments.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        gave(layout.size());
        // SAFETY: the caller's promises are the ones that the inner allocator asks for.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        gave(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        took(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Where the block moves, both are held for a moment; most move, so that the old one is freed after.
        gave(size);
        took(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { self.0.realloc(memory, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn counts_what_is_given_and_held() {
        let (_, seen) = counted(|| {
            drop(vec![0_u8; 1000]);
            vec![0_u8; 500]
        });
        // Other tests may allocate meanwhile.
        assert!(seen.calls >= 2 && seen.bytes >= 1500 && seen.peak >= 1000, "{seen:?}");
    }
}
