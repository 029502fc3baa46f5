//! How much memory an operation holds at its height, and that this is bounded by its input.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

/// The system's allocator, which counts for each thread.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static WORST: std::cell::RefCell<BTreeMap<&'static str, usize>> = const {
        std::cell::RefCell::new(BTreeMap::new())
    };
}

fn count(bytes: isize) {
    // A thread that ends has no counters any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

#[expect(unsafe_code, reason = "an allocator can be counted only by being one")]
// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as the caller of this.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as the caller of this.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: as the caller of this.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What an operation may hold however small its input is.
const FIXED: usize = 64 << 10;

/// Runs an operation on `length` bytes, which may hold `per_byte` times as many at its height, beside [`FIXED`].
pub(crate) fn bounded<R>(
    what: &'static str,
    length: usize,
    per_byte: usize,
    operation: impl FnOnce() -> R,
) -> R {
    let before = LIVE.get();
    PEAK.set(before);
    let result = operation();
    let held = usize::try_from(PEAK.get() - before).unwrap_or_default();
    if length >= 256 {
        let rate = held / length;
        WORST.with_borrow_mut(|worst| {
            let entry = worst.entry(what).or_default();
            *entry = rate.max(*entry);
        });
    }
    assert!(held <= length * per_byte + FIXED, "{what}: {held} bytes for an input of {length}");
    result
}

/// The most bytes held per byte of input, for inputs of some size.
pub(crate) fn report() -> String {
    WORST.with_borrow(|worst| format!("bytes held per byte: {worst:?}"))
}
