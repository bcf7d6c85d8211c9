//! Networks, by an address and the length of its prefix.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::lookup::mask;

/// An address, its host bits zero, and a prefix length.
pub type Cidr = (IpAddr, u8);

/// Returns `addr` with all but its first `prefix` bits cleared.
pub fn masked(addr: IpAddr, prefix: u8) -> IpAddr {
    match addr {
        // The mask leaves at most the 32 bits there were.
        IpAddr::V4(v4) => Ipv4Addr::from_bits(mask(v4.to_bits().into(), prefix, 32) as u32).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(mask(v6.to_bits(), prefix, 128)).into(),
    }
}
