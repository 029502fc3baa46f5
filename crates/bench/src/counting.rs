//! An allocator that counts, while it is told to.

#![expect(unsafe_code, reason = "an allocator cannot be implemented without")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// Passes everything on to another allocator. While [`counted`] runs, it counts what that thread asks for.
pub(crate) struct Counting<A>(pub(crate) A);

/// What was asked for during [`counted`], by its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocated {
    /// Calls that gave memory, growth in place included.
    pub(crate) calls: u64,
    /// Bytes that they gave; a block that grows counts anew.
    pub(crate) bytes: u64,
    /// The most that was held at one time beyond what was held at the start.
    pub(crate) peak: u64,
}

/// The counts of a thread, while it counts.
#[derive(Clone, Copy)]
struct Counts {
    calls: u64,
    bytes: u64,
    live: i64,
    peak: i64,
}

thread_local! {
    // Of its own for each thread: what other threads do meanwhile is not the work's.
    static COUNTS: Cell<Option<Counts>> = const { Cell::new(None) };
}

/// Counts the allocations of `work` on this thread. Counts within counts are not meant.
pub(crate) fn counted<R>(work: impl FnOnce() -> R) -> (R, Allocated) {
    COUNTS.set(Some(Counts { calls: 0, bytes: 0, live: 0, peak: 0 }));
    let result = work();
    let Counts { calls, bytes, peak, .. } = COUNTS.take().expect("only this function ends a count");
    (result, Allocated { calls, bytes, peak: peak.unsigned_abs() })
}

fn change(what: impl FnOnce(&mut Counts)) {
    // A thread that ends has no counts any more.
    let _ = COUNTS.try_with(|cell| {
        if let Some(mut counts) = cell.get() {
            what(&mut counts);
            cell.set(Some(counts));
        }
    });
}

fn gave(bytes: usize) {
    change(|counts| {
        counts.calls += 1;
        counts.bytes += bytes as u64;
        counts.live += bytes as i64;
        counts.peak = counts.peak.max(counts.live);
    });
}

fn took(bytes: usize) {
    change(|counts| counts.live -= bytes as i64);
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
    use std::hint::black_box;

    use super::{Allocated, counted};

    #[test]
    fn counts_what_is_given_and_held() {
        let earlier = black_box(vec![0_u8; 4000]);
        let (_, seen) = counted(|| {
            drop(black_box(vec![0_u8; 1000]));
            let kept = black_box(vec![0_u8; 500]);
            drop(earlier);
            kept
        });
        assert_eq!(seen, Allocated { calls: 2, bytes: 1500, peak: 1000 });
    }

    #[test]
    fn other_threads_do_not_count() {
        let (counting, counted_at_last) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                counting.wait();
                drop(black_box(vec![0_u8; 1000]));
                counted_at_last.wait();
            });
            let (_, seen) = counted(|| {
                counting.wait();
                counted_at_last.wait();
            });
            assert_eq!(seen.bytes, 0, "{seen:?}");
        });
    }
}
