//! A policy laid out as the kernel reads it (kernel/abi/te_image.h).

mod classes;
mod extended;
mod labels;
mod numbers;
mod objects;
mod writer;

use tidegate_bundle::layout::Layout;
use tidegate_bundle::te::contexts::FileContexts;
use tidegate_bundle::te::db::{Context, PolicyDb};

use self::numbers::Numbers;
use self::writer::Writer;
use crate::classes::{ClassError, Classes};
use crate::numbering::Numbering;
use crate::part;
use crate::rows::{Booleans, Rows};
use crate::sid::Sid;

/// A policy's image.
#[derive(Debug)]
pub struct Image {
    /// Its bytes, from the place that it was laid out for.
    pub bytes: Vec<u8>,
    /// Where that is.
    pub base: u32,
    /// Its classes.
    pub classes: Classes,
    /// Its numbers, and those of the policies before it.
    pub numbering: Numbering,
    /// The monitor's number of each of the policy's types, roles and users, by its number less 1.
    numbers: Numbers,
    /// How it was expanded.
    pub size: Size,
}

/// What an image is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Rows of different sources.
    pub rows: usize,
    /// Columns of different targets.
    pub columns: usize,
    /// Cells that differ.
    pub cells: usize,
    /// Bytes of all,
    pub bytes: usize,
    /// and of these, of the automata of file contexts.
    pub files: usize,
}

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Its classes do not fit.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// There are more than a SID can number.
    #[error("there are too many {0} since the monitor was loaded: stop it and start it anew")]
    TooMany(&'static str),
    /// It has no context for what has none.
    #[error("the policy has no context for the initial SID `{0}`")]
    NoInitial(&'static str),
}

impl Image {
    /// Lays a policy out for a place, with the numbers that names have already.
    ///
    /// # Errors
    /// As [`ImageError`] has it.
    pub fn of(
        db: &PolicyDb,
        booleans: &Booleans,
        files: Option<&FileContexts>,
        mut numbering: Numbering,
        base: u32,
    ) -> Result<Image, ImageError> {
        let classes = Classes::of(db)?;
        let contexts: Vec<Option<Context>> = files.map_or_else(Vec::new, |files| {
            // what the policy does not know labels nothing, as with setfiles(8)
            files
                .contexts
                .iter()
                .map(|text| db.context(text).ok())
                .collect()
        });
        let numbers = Numbers::of(db, &contexts, &mut numbering)?;
        let rows = Rows::of(db, booleans, &classes);
        let mut writer = Writer {
            db,
            booleans,
            classes: &classes,
            numbering: &numbering,
            numbers: &numbers,
            out: Layout::new(base, part::COUNT.next_multiple_of(2)),
            head: [0; part::COUNT],
            lines: vec![0],
        };
        // what lines of file contexts are numbered by comes first
        let before = writer.out.len();
        if let Some(files) = files {
            writer.files(files, &contexts);
        }
        let files = writer.out.len() - before;
        writer.write(&rows)?;
        writer.head[part::LINES] = writer.out.list(std::mem::take(&mut writer.lines));
        let (mut head, mut out) = (writer.head, writer.out);
        let bytes = out.len();
        head[part::SIZE] = bytes as u32;
        for (at, word) in head.into_iter().enumerate() {
            out.put(base + 4 * at as u32, word);
        }
        let size = Size {
            rows: rows.rows.len(),
            columns: rows.columns,
            cells: rows.cells.len(),
            bytes,
            files,
        };
        Ok(Image {
            bytes: out.into_bytes(),
            base,
            classes,
            numbering,
            numbers,
            size,
        })
    }

    /// The SID of a context; `None`: its range is not one that the image has.
    pub fn sid(&self, context: &Context) -> Option<Sid> {
        self.numbers.sid(context)
    }
}
