//! The few calls of the system that these tests need.

use std::{env, fs, process::Command};

/// Seconds after which a process that has not ended hangs. Far more than any test takes.
const DEADLINE: u32 = 300;

mod sys {
    #[repr(C)]
    pub(super) struct Limit {
        pub(super) soft: u64,
        pub(super) hard: u64,
    }

    pub(super) const ADDRESS_SPACE: i32 = 9;

    // SAFETY: as the C library declares them on 64-bit Linux.
    unsafe extern "C" {
        pub(super) fn fork() -> i32;
        pub(super) fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        pub(super) fn _exit(code: i32) -> !;
        pub(super) fn alarm(seconds: u32) -> u32;
        pub(super) fn getrlimit(resource: i32, limit: *mut Limit) -> i32;
        pub(super) fn setrlimit(resource: i32, limit: *const Limit) -> i32;
    }
}

/// Runs `test` in a process of its own, which this program is started as for the test `name` alone.
pub(crate) fn alone(name: &str, test: impl FnOnce()) {
    const VARIABLE: &str = "NEARFIELD_TEST_ALONE";
    if env::var_os(VARIABLE).is_some_and(|alone| alone == name) {
        // SAFETY: sets a timer whose signal ends the process.
        unsafe { sys::alarm(DEADLINE) };
        return test();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, name)
        // Freed memory goes back to the system, and nothing is set aside for threads, so that
        // memory can be refused again and again.
        .env("MALLOC_ARENA_MAX", "1")
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .env("MALLOC_TRIM_THRESHOLD_", "131072")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("1 passed") || !output.status.success(),
        "no test {name}:\n{text}"
    );
    assert!(
        output.status.success(),
        "{name} ended with {}:\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Forks, runs `child` in the child, and says how that ended: None for well.
pub(crate) fn in_fork(child: impl FnOnce()) -> Option<String> {
    // SAFETY: the child only runs `child`, which is what the test is about, and ends without
    // unwinding into what belongs to its parent.
    unsafe {
        let process = sys::fork();
        assert!(process >= 0, "fork failed");
        if process == 0 {
            sys::alarm(DEADLINE / 5);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            sys::_exit(i32::from(done.is_err()));
        }
        let mut status = 0;
        assert_eq!(sys::waitpid(process, &mut status, 0), process);
        match status {
            0 => None,
            status if status & 0x7f == 0 => Some(format!("exit code {}", status >> 8)),
            status if status & 0x7f == 14 => Some("a deadline: it hangs".into()),
            status => Some(format!("signal {}", status & 0x7f)),
        }
    }
}

/// Threads of this process.
pub(crate) fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// A field of /proc/self/status, in bytes.
fn status_bytes(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

/// Bytes of memory that this process had at most.
pub(crate) fn peak_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// Does `work` with an address space that may grow by `more` bytes.
pub(crate) fn with_memory<R>(more: u64, work: impl FnOnce() -> R) -> R {
    let mut old = sys::Limit { soft: 0, hard: 0 };
    // SAFETY: a limit to be filled in, and one to be read.
    unsafe {
        assert_eq!(sys::getrlimit(sys::ADDRESS_SPACE, &mut old), 0);
        let limit = sys::Limit {
            soft: (status_bytes("VmSize:") + more).min(old.hard),
            ..old
        };
        assert_eq!(sys::setrlimit(sys::ADDRESS_SPACE, &limit), 0);
    }
    let done = work();
    // SAFETY: as above.
    unsafe { assert_eq!(sys::setrlimit(sys::ADDRESS_SPACE, &old), 0) };
    done
}
