//! Takes the kernel proper out of a bzImage, so that no boot has to decompress
//! it again: a second of every boot under TCG.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::Tools;
use super::debian::run;

/// The compressed payload, by the setup header of
/// Documentation/arch/x86/boot.rst.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let field = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let setup_sectors = match *image.get(0x1f1)? {
        0 => 4,
        n => usize::from(n),
    };
    let start = (setup_sectors + 1) * 512 + field(0x248)?;
    // The last four bytes are the uncompressed size, appended by the kernel's build.
    let end = start.checked_add(field(0x24c)?)?.checked_sub(4)?;
    image.get(start..end)
}

/// Writes the ELF kernel inside `bzimage` to `vmlinux`.
pub(super) fn unpack(tools: &Tools, bzimage: &Path, vmlinux: &Path) -> Result<()> {
    let image = fs::read(bzimage)?;
    let compressed = vmlinux.with_extension("zst");
    fs::write(
        &compressed,
        payload(&image).context("vmlinuz is not a bzImage")?,
    )?;
    run(tools
        .command("usr/bin/zstd", "zstd")
        .args(["-d", "-q", "--rm", "-o"])
        .args([vmlinux, &compressed]))?;
    let mut magic = [0; 4];
    std::io::Read::read_exact(&mut File::open(vmlinux)?, &mut magic)?;
    ensure!(
        magic == *b"\x7fELF",
        "no ELF kernel in {}",
        bzimage.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bzimage(setup_sectors: u8, content: &[u8]) -> Vec<u8> {
        let start = (usize::from(setup_sectors) + 1) * 512 + 16;
        let mut image = vec![0; start];
        image[0x1f1] = setup_sectors;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(content.len() as u32 + 4).to_le_bytes());
        image.extend_from_slice(content);
        image.extend_from_slice(&[0; 64]);
        image
    }

    #[test]
    fn the_payload_is_found_by_the_header() {
        assert_eq!(payload(&bzimage(3, b"kernel")), Some(&b"kernel"[..]));
    }

    #[test]
    fn what_is_no_bzimage_is_refused() {
        assert_eq!(payload(b"\x7fELF"), None);
        let mut cut = bzimage(3, b"kernel");
        cut.truncate(0x300);
        assert_eq!(payload(&cut), None);
    }
}
