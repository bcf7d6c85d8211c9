//! What a machine is made of. Every artefact is built once, from a recipe, and
//! kept in the cache under the recipe's hash.

mod bzimage;
mod cache;
mod debian;
mod ext4;
mod guest;
mod image;
mod kernel;
mod labels;
mod programs;
mod tools;

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};

pub use cache::Cache;
pub(crate) use cache::{recipe_hash, remove_tree};
pub(crate) use ext4::{Content, make as make_ext4};
pub use image::Image;
pub use kernel::{Kernel, KernelFiles};
pub use tools::Tools;

use crate::progress::Progress;

/// The cache and the way to fill it; every other call starts from here.
#[derive(Debug)]
pub struct Lab {
    cache: Cache,
    progress: Progress,
}

impl Lab {
    /// Opens the cache of this source tree, or `TIDEGATE_LAB_CACHE`.
    ///
    /// # Errors
    /// When there is neither, or the directory cannot be made.
    pub fn open() -> Result<Self> {
        Ok(Self {
            cache: Cache::open()?,
            progress: Progress::default(),
        })
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Where long steps are told.
    #[must_use]
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Builds whatever is missing for machines with these kernels and this image, in
    /// parallel.
    ///
    /// # Errors
    /// The first artefact that could not be built, with its log's last lines.
    pub fn setup(&self, kernels: &[Kernel], image: Image) -> Result<()> {
        std::thread::scope(|scope| {
            let mut jobs = vec![
                scope.spawn(|| self.image(image).map(drop)),
                scope.spawn(|| self.guest_init().map(drop)),
                scope.spawn(|| self.programs().map(drop)),
            ];
            jobs.extend(
                kernels
                    .iter()
                    .map(|k| scope.spawn(|| self.kernel(k).map(drop))),
            );
            jobs.into_iter()
                .try_for_each(|job| job.join().map_err(|_| anyhow!("a builder panicked"))?)
        })
        .context("lab setup")
    }

    /// QEMU and the filesystem tools, from Debian trixie.
    ///
    /// # Errors
    /// When the tree cannot be built.
    pub fn tools(&self) -> Result<Tools> {
        tools::MACHINES.ensure(&self.cache, &self.progress)
    }

    /// The model checker, from Debian trixie.
    ///
    /// # Errors
    /// When the tree cannot be built.
    pub fn prover(&self) -> Result<Tools> {
        tools::PROVER.ensure(&self.cache, &self.progress)
    }

    /// AppArmor's parser and sources, from Debian trixie.
    ///
    /// # Errors
    /// When the tree cannot be built.
    pub fn parser(&self) -> Result<Tools> {
        tools::PARSER.ensure(&self.cache, &self.progress)
    }

    /// The tree of the AppArmor profiles that Debian trixie ships.
    ///
    /// # Errors
    /// When the tree cannot be built.
    pub fn profiles(&self) -> Result<Tools> {
        tools::PROFILES.ensure(&self.cache, &self.progress)
    }

    /// A stock Debian kernel with its modules.
    ///
    /// # Errors
    /// When no suite has that series, or it cannot be fetched.
    pub fn kernel(&self, kernel: &Kernel) -> Result<KernelFiles> {
        kernel::ensure(&self.cache, &self.progress, kernel, || self.tools())
    }

    /// A root filesystem, an ext4 image.
    ///
    /// # Errors
    /// When the image cannot be built.
    pub fn image(&self, image: Image) -> Result<PathBuf> {
        image.ensure(&self.cache, &self.progress, || self.tools())
    }

    /// An empty ext4 image for a machine to work in.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn scratch(&self) -> Result<PathBuf> {
        image::scratch(&self.cache, &self.tools()?)
    }

    /// The directory of the workloads' programs, each static.
    ///
    /// # Errors
    /// When one does not compile.
    pub fn programs(&self) -> Result<PathBuf> {
        programs::ensure(&self.cache, &self.progress)
    }

    /// The guest's static init.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn guest_init(&self) -> Result<PathBuf> {
        guest::ensure(&self.cache, &self.progress)
    }
}
