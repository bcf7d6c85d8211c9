//! Networks, as both languages write them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use miette::Diagnostic;
use thiserror::Error;
use tidegate_bundle::network::{Cidr, masked};

/// What is wrong with a network.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum NetworkProblem {
    /// Not an address.
    #[error("`{0}` is not a network")]
    #[diagnostic(
        code(plm::network),
        help("write `loopback`, an address, or a network as 10.0.0.0/8 or 2001:db8::/32")
    )]
    Malformed(String),
    /// A prefix length out of range.
    #[error("a prefix of {prefix} bits where the address has {bits}")]
    #[diagnostic(code(plm::network_prefix))]
    Prefix {
        /// The prefix length.
        prefix: u32,
        /// The address's length.
        bits: u8,
    },
    /// Bits are set that the prefix does not cover.
    #[error("the address goes on after its prefix")]
    #[diagnostic(
        code(plm::network_host_bits),
        help("for the network write {network}/{prefix}, for the one host {host}")
    )]
    HostBits {
        /// The address with those bits cleared.
        network: IpAddr,
        /// The prefix length.
        prefix: u8,
        /// The address as written.
        host: IpAddr,
    },
    /// `::ffff:a.b.c.d`.
    #[error("an IPv4 network written as IPv6")]
    #[diagnostic(
        code(plm::network_mapped),
        help("IPv4 peers are always seen as IPv4: write {network}/{prefix}")
    )]
    Mapped {
        /// The IPv4 address.
        network: Ipv4Addr,
        /// Its prefix length.
        prefix: u8,
    },
}

/// The networks that `word` names.
pub(crate) fn parse(word: &str) -> Result<Vec<Cidr>, NetworkProblem> {
    if word == "loopback" {
        return Ok(vec![
            (Ipv4Addr::new(127, 0, 0, 0).into(), 8),
            (Ipv6Addr::LOCALHOST.into(), 128),
        ]);
    }
    let malformed = || NetworkProblem::Malformed(word.to_owned());
    let (addr, prefix) = match word.split_once('/') {
        Some((addr, prefix)) => {
            // `u32::from_str` would take a sign.
            if !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(malformed());
            }
            (addr, Some(prefix.parse::<u32>().map_err(|_| malformed())?))
        }
        None => (word, None),
    };
    let addr: IpAddr = addr.parse().map_err(|_| malformed())?;
    let bits = if addr.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => bits,
        Some(prefix) => u8::try_from(prefix)
            .ok()
            .filter(|prefix| *prefix <= bits)
            .ok_or(NetworkProblem::Prefix { prefix, bits })?,
    };
    let network = masked(addr, prefix);
    if network != addr {
        return Err(NetworkProblem::HostBits {
            network,
            prefix,
            host: addr,
        });
    }
    if let (IpAddr::V6(v6), 96..) = (addr, prefix)
        && let Some(network) = v6.to_ipv4_mapped()
    {
        return Err(NetworkProblem::Mapped {
            network,
            prefix: prefix - 96,
        });
    }
    Ok(vec![(addr, prefix)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(word: &str) -> String {
        match parse(word) {
            Ok(networks) => networks
                .iter()
                .map(|(addr, prefix)| format!("{addr}/{prefix}"))
                .collect::<Vec<_>>()
                .join(" "),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn networks() {
        assert_eq!(one("loopback"), "127.0.0.0/8 ::1/128");
        assert_eq!(one("10.0.0.0/8"), "10.0.0.0/8");
        assert_eq!(one("192.0.2.1"), "192.0.2.1/32");
        assert_eq!(one("0.0.0.0/0"), "0.0.0.0/0");
        assert_eq!(one("::/0"), "::/0");
        assert_eq!(one("2001:db8::/32"), "2001:db8::/32");
    }

    #[test]
    fn what_is_not_a_network() {
        for word in [
            "eth0",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "fe80::1%eth0",
            "1.2.3.4/999999999999",
        ] {
            assert_eq!(parse(word), Err(NetworkProblem::Malformed(word.into())));
        }
        assert_eq!(
            parse("10.0.0.0/33"),
            Err(NetworkProblem::Prefix {
                prefix: 33,
                bits: 32
            })
        );
        assert_eq!(
            parse("::/300"),
            Err(NetworkProblem::Prefix {
                prefix: 300,
                bits: 128
            })
        );
        assert_eq!(
            parse("10.1.2.3/8"),
            Err(NetworkProblem::HostBits {
                network: Ipv4Addr::new(10, 0, 0, 0).into(),
                prefix: 8,
                host: Ipv4Addr::new(10, 1, 2, 3).into()
            })
        );
        assert_eq!(
            parse("::ffff:10.0.0.0/104"),
            Err(NetworkProblem::Mapped {
                network: Ipv4Addr::new(10, 0, 0, 0),
                prefix: 8
            })
        );
    }
}
