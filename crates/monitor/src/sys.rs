//! The BPF system calls the monitor needs beyond libbpf-rs's: maps and programs
//! that another process loaded, by their pins.

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::skel::types;

/// Types the kernel and this process exchange as bytes.
///
/// # Safety
/// The type is `repr(C)`, without implicit padding and without invalid values.
pub(crate) unsafe trait Pod: Copy + 'static {
    /// A value from its bytes; `None` if there are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= size_of::<Self>())
            // SAFETY: there are enough bytes, any bytes are a value, the read is unaligned.
            .then(|| unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) })
    }
}

/// Declares the skeleton's types that are Pods; each has explicit padding only.
macro_rules! pod {
    ($($t:ty),* $(,)?) => { $(
        // SAFETY: integers and arrays of them, laid out by the object's BTF.
        unsafe impl Pod for $t {}
    )* };
}
pod!(u8, u16, u32, i32, u64);
pod!(
    types::tg_node,
    types::tg_edge,
    types::tg_net,
    types::tg_given_key,
    types::tg_inode
);
pod!(
    types::tg_event,
    types::tg_subject,
    types::tg_stats,
    types::tg_ps,
    types::tg_ps_model,
    types::tg_held,
    types::tg_code,
    types::tg_call,
    types::tg_te_held,
    types::tg_te_task,
    types::tg_caps_held,
    types::caps_change,
    types::caps_taken_key,
    types::te_adopted,
    types::te_sock
);
pod!(
    types::tg_image,
    types::tg_profile,
    types::tg_table,
    types::tg_pair
);
pod!(
    crate::recorder_skel::types::tr_line,
    crate::recorder_skel::types::tr_end
);

/// The bytes of a value.
pub(crate) fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: without padding, every byte of it is one of its fields'.
    unsafe { std::slice::from_raw_parts(ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// What a call, or a program in the kernel, says of what it did: an error if that is negative.
pub(crate) fn check(ret: c_int) -> io::Result<c_int> {
    if ret < 0 {
        return Err(io::Error::from_raw_os_error(-ret));
    }
    Ok(ret)
}

/// A descriptor that a call returned.
pub(crate) fn owned(ret: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call that returned it made it for us alone.
    check(ret).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn cstring(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Pins a map, program or link.
pub(crate) fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = cstring(path)?;
    // SAFETY: a valid descriptor and a NUL-terminated path.
    check(unsafe { libbpf_sys::bpf_obj_pin(fd.as_raw_fd(), path.as_ptr()) }).map(drop)
}

/// Opens what is pinned at a path.
pub(crate) fn open_pin(path: &Path) -> io::Result<OwnedFd> {
    let path = cstring(path)?;
    // SAFETY: a NUL-terminated path.
    owned(unsafe { libbpf_sys::bpf_obj_get(path.as_ptr()) })
}

/// Attaches a loaded program to the hook, or the function of the kernel, that it was loaded for.
pub(crate) fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: a valid descriptor; where it goes is known since it was loaded.
    owned(unsafe { libbpf_sys::bpf_raw_tracepoint_open(ptr::null(), program.as_raw_fd()) })
}

/// Which tasks an iterator looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Over<'a> {
    All,
    /// One thread.
    Thread(u32),
    /// Every thread of a process, by its pidfd.
    Process(BorrowedFd<'a>),
}

/// Runs an iterator program over tasks; its output.
pub(crate) fn iterate(program: BorrowedFd<'_>, over: Over<'_>) -> io::Result<OwnedFd> {
    let mut info = libbpf_sys::bpf_iter_link_info::default();
    match over {
        Over::All => {}
        Over::Thread(tid) => info.task.tid = tid,
        Over::Process(pidfd) => info.task.pid_fd = pidfd.as_raw_fd() as u32,
    }
    let opts = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as u64,
        iter_info: &raw mut info,
        iter_info_len: size_of_val(&info) as u32,
        ..Default::default()
    };
    let (fd, kind) = (program.as_raw_fd(), libbpf_sys::BPF_TRACE_ITER);
    // SAFETY: a valid descriptor; the options and what they point to outlive the call.
    let link = owned(unsafe { libbpf_sys::bpf_link_create(fd, 0, kind, &opts) })?;
    // SAFETY: a valid descriptor.
    owned(unsafe { libbpf_sys::bpf_iter_create(link.as_raw_fd()) })
}

/// Runs a program that is attached to nothing (`SEC("syscall")`), with what it reads and writes.
pub(crate) fn run<T: Pod>(program: &impl AsFd, context: &mut T) -> io::Result<()> {
    let mut opts = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as u64,
        ctx_in: ptr::from_mut(context).cast(),
        ctx_size_in: size_of::<T>() as u32,
        ..Default::default()
    };
    let fd = program.as_fd().as_raw_fd();
    // SAFETY: a valid descriptor; the options and the context outlive the call, which writes the context as a whole.
    check(unsafe { libbpf_sys::bpf_prog_test_run_opts(fd, &raw mut opts) }).map(drop)
}

/// Makes an arena of so many pages, which every process has at an address.
pub(crate) fn create_arena(pages: u32, address: u64) -> io::Result<OwnedFd> {
    let opts = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        map_flags: libbpf_sys::BPF_F_MMAPABLE,
        map_extra: address,
        ..Default::default()
    };
    let (kind, name) = (libbpf_sys::BPF_MAP_TYPE_ARENA, c"arena");
    // SAFETY: a NUL-terminated name; the options outlive the call.
    owned(unsafe { libbpf_sys::bpf_map_create(kind, name.as_ptr(), 0, 0, pages, &opts) })
}

/// Sizes of a map, from the kernel.
pub(crate) fn map_info(fd: BorrowedFd<'_>) -> io::Result<libbpf_sys::bpf_map_info> {
    let mut info = libbpf_sys::bpf_map_info::default();
    let mut len = size_of_val(&info) as u32;
    // SAFETY: `info` is as long as `len` says and outlives the call.
    check(unsafe {
        libbpf_sys::bpf_map_get_info_by_fd(fd.as_raw_fd(), &raw mut info, &raw mut len)
    })?;
    Ok(info)
}

/// A program's number in the kernel.
pub(crate) fn program_id(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of_val(&info) as u32;
    // SAFETY: `info` is as long as `len` says and outlives the call.
    check(unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(fd.as_raw_fd(), &raw mut info, &raw mut len)
    })?;
    Ok(info.id)
}

/// Whether the kernel still has the program of this number, attached or held by anybody.
pub(crate) fn has_program(id: u32) -> io::Result<bool> {
    // SAFETY: no pointers.
    match owned(unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) }) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// A map whose keys and values are known; what it does not hold is `None`.
#[derive(Debug)]
pub(crate) struct Map<K, V> {
    fd: OwnedFd,
    /// Entries it has room for.
    pub max_entries: u32,
    types: PhantomData<fn(K) -> V>,
}

impl<K: Pod, V: Pod> Map<K, V> {
    /// Takes a map over; an error if its sizes are not those of the types.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let info = map_info(fd.as_fd())?;
        let percpu = info.type_ == libbpf_sys::BPF_MAP_TYPE_PERCPU_ARRAY;
        let value = if percpu {
            size_of::<V>().next_multiple_of(8)
        } else {
            size_of::<V>()
        };
        if (info.key_size as usize, info.value_size as usize) != (size_of::<K>(), value) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "other sizes"));
        }
        Ok(Map {
            fd,
            max_entries: info.max_entries,
            types: PhantomData,
        })
    }

    /// Makes a map of its own.
    pub fn create(kind: u32, name: &str, max_entries: u32, flags: u32) -> io::Result<Self> {
        let opts = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
            map_flags: flags,
            ..Default::default()
        };
        let name = CString::new(name)?;
        let (key, value) = (size_of::<K>() as u32, size_of::<V>() as u32);
        // SAFETY: a NUL-terminated name; the options outlive the call.
        let fd = owned(unsafe {
            libbpf_sys::bpf_map_create(kind, name.as_ptr(), key, value, max_entries, &opts)
        })?;
        Ok(Map {
            fd,
            max_entries,
            types: PhantomData,
        })
    }

    pub fn get(&self, key: &K) -> io::Result<Option<V>> {
        let mut value = MaybeUninit::<V>::uninit();
        // SAFETY: key and value are as long as the map's, see `new`; the kernel
        // writes the whole value where it succeeds.
        let ret = unsafe {
            libbpf_sys::bpf_map_lookup_elem(
                self.fd.as_raw_fd(),
                ptr::from_ref(key).cast(),
                value.as_mut_ptr().cast(),
            )
        };
        match check(ret) {
            // SAFETY: written, and any bytes are a value.
            Ok(_) => Ok(Some(unsafe { value.assume_init() })),
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NOENT.raw_os_error()) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The values of a per-CPU map.
    pub fn get_percpu(&self, key: &K) -> io::Result<Vec<V>> {
        // SAFETY: no arguments.
        let cpus = check(unsafe { libbpf_sys::libbpf_num_possible_cpus() })? as usize;
        let size = size_of::<V>().next_multiple_of(8);
        let mut bytes = vec![0u8; cpus * size];
        // SAFETY: the buffer has room for every possible CPU's value.
        check(unsafe {
            libbpf_sys::bpf_map_lookup_elem(
                self.fd.as_raw_fd(),
                ptr::from_ref(key).cast(),
                bytes.as_mut_ptr().cast(),
            )
        })?;
        Ok(bytes.chunks_exact(size).filter_map(V::read).collect())
    }

    /// Where somebody else makes a task's storage at the same moment, the kernel has one of the two
    /// fail, which looks again.
    pub fn put(&self, key: &K, value: &V) -> io::Result<()> {
        let again = Some(rustix::io::Errno::AGAIN.raw_os_error());
        let mut tries = 0..3;
        loop {
            match self.update(key, value, libbpf_sys::BPF_ANY) {
                Err(e) if e.raw_os_error() == again && tries.next().is_some() => {}
                done => return done,
            }
        }
    }

    /// With one of BPF_ANY, BPF_NOEXIST, BPF_EXIST.
    pub fn update(&self, key: &K, value: &V, flags: u32) -> io::Result<()> {
        // SAFETY: key and value are as long as the map's, see `new`.
        check(unsafe {
            libbpf_sys::bpf_map_update_elem(
                self.fd.as_raw_fd(),
                ptr::from_ref(key).cast(),
                ptr::from_ref(value).cast(),
                u64::from(flags),
            )
        })
        .map(drop)
    }

    /// Whether there was such an entry.
    pub fn delete(&self, key: &K) -> io::Result<bool> {
        // SAFETY: the key is as long as the map's, see `new`.
        let ret = unsafe {
            libbpf_sys::bpf_map_delete_elem(self.fd.as_raw_fd(), ptr::from_ref(key).cast())
        };
        match check(ret) {
            Ok(_) => Ok(true),
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NOENT.raw_os_error()) => {
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    /// Writes many entries by few calls (hashes and arrays).
    pub fn put_all(&self, keys: &[K], values: &[V]) -> io::Result<()> {
        let opts = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as u64,
            ..Default::default()
        };
        for (keys, values) in keys.chunks(4096).zip(values.chunks(4096)) {
            let mut count = keys.len().min(values.len()) as u32;
            // SAFETY: both slices hold `count` entries of the map's sizes.
            check(unsafe {
                libbpf_sys::bpf_map_update_batch(
                    self.fd.as_raw_fd(),
                    keys.as_ptr().cast(),
                    values.as_ptr().cast(),
                    &raw mut count,
                    &opts,
                )
            })?;
        }
        Ok(())
    }

    /// A copy of every entry; what changes meanwhile may be in it or not.
    pub fn entries(&self) -> io::Result<Vec<(K, V)>> {
        let opts = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as u64,
            ..Default::default()
        };
        let room = 4096.max(self.max_entries as usize / 16);
        let mut keys = Vec::<K>::with_capacity(room);
        let mut values = Vec::<V>::with_capacity(room);
        let (mut from, mut to) = ([0u64; 8], [0u64; 8]);
        let (mut first, mut out) = (true, Vec::new());
        loop {
            let mut count = room as u32;
            let start = if first {
                ptr::null_mut()
            } else {
                from.as_mut_ptr()
            };
            // SAFETY: both vectors have room for `count` entries of the map's sizes;
            // a hash's cursor is four bytes, which `from` and `to` have room for.
            let ret = unsafe {
                libbpf_sys::bpf_map_lookup_batch(
                    self.fd.as_raw_fd(),
                    start.cast(),
                    to.as_mut_ptr().cast(),
                    keys.as_mut_ptr().cast(),
                    values.as_mut_ptr().cast(),
                    &raw mut count,
                    &opts,
                )
            };
            let end = match check(ret) {
                Ok(_) => false,
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NOENT.raw_os_error()) => true,
                Err(e) => return Err(e),
            };
            // SAFETY: the kernel wrote `count` entries to each.
            unsafe {
                keys.set_len(count as usize);
                values.set_len(count as usize);
            }
            out.extend(keys.iter().copied().zip(values.iter().copied()));
            if end {
                return Ok(out);
            }
            (from, first) = (to, false);
        }
    }
}

impl<K, V> AsFd for Map<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Text of a NUL-padded character array.
pub(crate) fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .map(|&c| c as u8)
        .take_while(|&c| c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
