//! What this process has used, as Linux tells it, in the units that the peers print.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A field of `/proc/self/status` in kilobytes: `VmRSS` is the memory in use, `VmHWM` its peak. 0 where there is none.
pub(crate) fn memory_kb(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

/// The same as [`cpu_time`], in milliseconds.
pub(crate) fn cpu_ms() -> u64 {
    u64::try_from(cpu_time().as_millis()).unwrap_or(u64::MAX)
}

/// User and system time of this process so far, of all its threads, as exact as the kernel knows it.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        assert!(memory_kb("VmRSS") > 100);
        // The peak alone remembers what was freed.
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        assert!(memory_kb("VmHWM") > 60 << 10);
        assert_eq!(memory_kb("VmNothing"), 0);
        // The exact one first: other tests of this process may use time between the two.
        let exact = cpu_time();
        let before = cpu_ms();
        let mut sum = 0_u64;
        while cpu_ms() < before + 20 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(cpu_time() >= exact + Duration::from_millis(10));
    }
}
