//! What the kernel has one of, and what it gives without a name.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::te_ops::op::Ops;
use crate::te_ops::sys::{at, fd, open, past, sys};

fn klog(what: i32, len: i32) -> io::Result<()> {
    let mut text = [0u8; 64];
    sys!(libc::klogctl(what, text.as_mut_ptr().cast(), len)).map(drop)
}

fn ring(flags: u32) -> io::Result<(i64, [u32; 30])> {
    let mut parameters = [0u32; 30];
    parameters[2] = flags;
    let ring = sys!(libc::syscall(
        libc::SYS_io_uring_setup,
        4,
        parameters.as_mut_ptr()
    ))?;
    Ok((ring, parameters))
}

/// Has a ring do something; what came of that.
fn submit(fill: impl FnOnce(&mut [u8], i64)) -> io::Result<i32> {
    let (ring, parameters) = ring(0)?;
    let map = |len: usize, offset: i64| {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: an address of the kernel's choice.
        match unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                prot,
                libc::MAP_SHARED,
                ring as i32,
                offset,
            )
        } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            page => Ok(page.cast::<u8>()),
        }
    };
    let (queue, entries) = (map(4096, 0)?, map(4096, 0x1000_0000)?);
    // SAFETY: the kernel says where in the pages its words are.
    unsafe {
        fill(std::slice::from_raw_parts_mut(entries, 64), ring);
        let word = |at: u32| queue.add(at as usize).cast::<u32>();
        word(parameters[16]).write_volatile(0);
        word(parameters[11]).write_volatile(1);
        let done = libc::syscall(
            libc::SYS_io_uring_enter,
            ring,
            1,
            1,
            1,
            ptr::null::<u8>(),
            0,
        );
        crate::sys::answer(done)?;
        let completed = queue.add(parameters[25] as usize);
        Ok(completed.add(8).cast::<i32>().read_volatile())
    }
}

fn personality(ring: i64) -> io::Result<i64> {
    // IORING_REGISTER_PERSONALITY
    sys!(libc::syscall(
        libc::SYS_io_uring_register,
        ring,
        9,
        ptr::null::<u8>(),
        0
    ))
}

fn by_ring(fill: impl FnOnce(&mut [u8], i64)) -> io::Result<()> {
    let came = submit(fill)?;
    past(if came < 0 {
        Err(io::Error::from_raw_os_error(-came))
    } else {
        Ok(0)
    })
}

/// Opens a file by a ring.
fn open_by_ring(flags: i32) -> io::Result<()> {
    let path = crate::te_ops::sys::cat("f");
    by_ring(|entry, _| {
        // IORING_OP_OPENAT
        entry[0] = 18;
        entry[4..8].copy_from_slice(&libc::AT_FDCWD.to_le_bytes());
        entry[16..24].copy_from_slice(&(path.as_ptr() as u64).to_le_bytes());
        entry[28..32].copy_from_slice(&flags.to_le_bytes());
    })
}

pub fn perf(kind: u32, config: u64, pid: i32, cpu: i32, flags: u64) -> io::Result<i64> {
    let mut attr = [0u64; 16];
    attr[0] = u64::from(kind) | 128 << 32;
    attr[1] = config;
    attr[5] = flags;
    sys!(libc::syscall(
        libc::SYS_perf_event_open,
        attr.as_ptr(),
        pid,
        cpu,
        -1,
        0
    ))
}

/// What the kernel takes for the image of one until it looks closer: `struct setup_header` of its boot protocol. It is too
/// short.
fn image() -> io::Result<()> {
    let mut bytes = [0; 1024];
    for (place, part) in [
        (0x1fe, [0x55, 0xaa].as_slice()),
        (0x202, b"HdrS\x0c\x02"), // and its version
        (0x211, &[1]),            // loaded high
        (0x236, &[3]),            // of 64 bits, at any address
    ] {
        bytes[place..place + part.len()].copy_from_slice(part);
    }
    crate::te_ops::file::make()?;
    std::fs::write(at("f"), bytes)
}

fn kexec(kernel: i32, initramfs: i32, flags: i32) -> io::Result<()> {
    past(sys!(libc::syscall(
        libc::SYS_kexec_file_load,
        kernel,
        initramfs,
        1,
        c"".as_ptr(),
        flags
    )))
}

const EXCLUDE_KERNEL: u64 = 1 << 5 | 1 << 6;

pub fn add(ops: &mut Ops) {
    ops.plain("the kernel's log: read all", || klog(3, 64));
    ops.plain("the kernel's log: size", || klog(10, 0));
    ops.plain("the kernel's log: unread", || klog(9, 0));
    ops.plain("the kernel's log: console off", || klog(6, 0));
    ops.plain("the kernel's log: console level", || klog(8, 4));
    ops.plain("the kernel's log: clear", || klog(5, 0));
    ops.plain("the kernel's log: open", || {
        open("/dev/kmsg", libc::O_RDONLY).map(drop)
    });
    ops.plain("the kernel's log: read the file", || {
        open("/proc/kmsg", libc::O_RDONLY | libc::O_NONBLOCK).map(drop)
    });
    // MODULE_INIT_COMPRESSED_FILE: the kernel decompresses it
    for (name, flags) in [("load a module", 0), ("load a compressed module", 4)] {
        ops.with(name, crate::te_ops::file::make, move |()| {
            let file = open(&at("f"), libc::O_RDONLY)?;
            past(sys!(libc::syscall(
                libc::SYS_finit_module,
                file.as_raw_fd(),
                c"".as_ptr(),
                flags
            )))
        });
    }
    ops.with("load a kernel", crate::te_ops::file::make, |()| {
        let file = open(&at("f"), libc::O_RDONLY)?;
        // KEXEC_FILE_NO_INITRAMFS
        kexec(file.as_raw_fd(), -1, 4)
    });
    ops.with("load a kernel and an initramfs", image, |()| {
        let file = open(&at("f"), libc::O_RDONLY)?;
        kexec(file.as_raw_fd(), file.as_raw_fd(), 0)
    });
    ops.plain("a ring", || ring(0).map(drop));
    // IORING_SETUP_SQPOLL
    ops.plain("a ring with a thread of the kernel's", || ring(2).map(drop));
    ops.plain("a ring: a personality", || {
        personality(ring(0)?.0).map(drop)
    });
    ops.plain("a ring: act by a personality", || {
        let mut registered = Ok(0);
        let done = by_ring(|entry, ring| {
            registered = personality(ring);
            if let Ok(number) = registered {
                entry[42..44].copy_from_slice(&(number as u16).to_le_bytes());
            }
        });
        registered.and(done)
    });
    ops.plain("a ring: do nothing", || by_ring(|_, _| ()));
    ops.with("a ring: open to read", crate::te_ops::file::make, |()| {
        open_by_ring(libc::O_RDONLY)
    });
    ops.with("a ring: open to write", crate::te_ops::file::make, |()| {
        open_by_ring(libc::O_WRONLY)
    });
    ops.plain("a ring: a device's command", || {
        let null = open("/dev/null", libc::O_RDWR)?;
        by_ring(|entry, _| {
            // IORING_OP_URING_CMD
            entry[0] = 46;
            entry[4..8].copy_from_slice(&null.as_raw_fd().to_le_bytes());
        })
    });
    ops.plain("faults handled in user space", || {
        sys!(libc::syscall(libc::SYS_userfaultfd, 0)).map(drop)
    });
    ops.plain("an eventfd", || sys!(libc::eventfd(0, 0)).map(drop));
    ops.plain("an epoll", || sys!(libc::epoll_create1(0)).map(drop));
    ops.plain("a signalfd", || {
        // SAFETY: an empty set.
        let set: libc::sigset_t = unsafe { std::mem::zeroed() };
        sys!(libc::signalfd(-1, &raw const set, 0)).map(drop)
    });
    ops.plain("a pidfd", || {
        sys!(libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0)).map(drop)
    });
    ops.plain("memory that is secret", || {
        past(sys!(libc::syscall(libc::SYS_memfd_secret, 0)))
    });
    ops.plain("count instructions of one's own", || {
        perf(1, 1, 0, -1, EXCLUDE_KERNEL).map(drop)
    });
    ops.plain("count in the kernel", || perf(1, 1, 0, -1, 0).map(drop));
    ops.plain("count on a processor", || perf(1, 1, -1, 0, 0).map(drop));
    ops.plain("count a tracepoint", || past(perf(2, 1, 0, -1, 0)));
    ops.plain("read a count", || {
        let on = perf(1, 1, 0, -1, EXCLUDE_KERNEL).map(fd)?;
        let mut value = 0u64;
        sys!(libc::read(on.as_raw_fd(), (&raw mut value).cast(), 8)).map(drop)
    });
    ops.plain("reset a count", || {
        let on = perf(1, 1, 0, -1, EXCLUDE_KERNEL).map(fd)?;
        // PERF_EVENT_IOC_RESET
        sys!(libc::ioctl(on.as_raw_fd(), 0x2403, 0)).map(drop)
    });
    ops.told("count another's", crate::te_ops::process::other, |pid| {
        perf(1, 1, pid as i32, -1, EXCLUDE_KERNEL).map(drop)
    });
}
