//! What the plots are drawn on: `plotters`' SVG, in half pixels of the page.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{DrawingArea, IntoDrawingArea, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, ShapeStyle, TextStyle};

/// Words and the zero line.
pub const INK: RGBColor = RGBColor(0x1a, 0x1a, 0x1a);
/// What is less important.
pub const MUTED: RGBColor = RGBColor(0x6b, 0x6b, 0x6b);
/// The grid.
pub const HAIR: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// The noise floor.
pub const BAND: RGBColor = RGBColor(0xe2, 0xe2, 0xd8);
/// Colours of lines: Okabe and Ito's without yellow, then three of Tol's. The page's style
/// sheet has lighter ones for a dark screen, by these values.
pub const SERIES: [RGBColor; 10] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x88, 0x22, 0x55),
    RGBColor(0x99, 0x99, 0x33),
    RGBColor(0x33, 0x22, 0x88),
    RGBColor(0x66, 0x66, 0x66),
];

/// Where words stand by their point.
#[derive(Debug, Clone, Copy)]
pub enum Side {
    /// To the right of it.
    Start,
    /// Around it.
    Middle,
    /// To the left of it.
    End,
}

/// A plot that is being drawn.
pub struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Draws on a canvas of this size.
///
/// # Errors
/// When something cannot be drawn.
pub fn draw(size: (i32, i32), with: impl FnOnce(&Canvas<'_>) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    let pixels = (u32::try_from(size.0)?, u32::try_from(size.1)?);
    {
        let area = SVGBackend::with_string(&mut svg, pixels).into_drawing_area();
        let canvas = Canvas { area };
        with(&canvas)?;
        canvas.area.present().map_err(|e| anyhow!("{e}"))?;
    }
    Ok(svg)
}

impl Canvas<'_> {
    fn put<E>(&self, element: &E) -> Result<()>
    where
        for<'b> &'b E: plotters::element::PointCollection<'b, (i32, i32)>,
        E: for<'b> plotters::element::Drawable<SVGBackend<'b>>,
    {
        self.area.draw(element).map_err(|e| anyhow!("a plot: {e}"))
    }

    /// Words.
    pub fn words(&self, at: (i32, i32), side: Side, colour: RGBColor, words: &str) -> Result<()> {
        self.styled(at, side, colour, words, FontStyle::Normal)
    }

    /// Words that head something.
    pub fn strong(&self, at: (i32, i32), side: Side, words: &str) -> Result<()> {
        self.styled(at, side, INK, words, FontStyle::Bold)
    }

    fn styled(
        &self,
        at: (i32, i32),
        side: Side,
        colour: RGBColor,
        words: &str,
        style: FontStyle,
    ) -> Result<()> {
        let h = match side {
            Side::Start => HPos::Left,
            Side::Middle => HPos::Center,
            Side::End => HPos::Right,
        };
        let font = ("sans-serif", 26, style).into_font();
        let style = TextStyle::from(font)
            .color(&colour)
            .pos(Pos::new(h, VPos::Center));
        self.put(&Text::new(words.to_owned(), at, style))
    }

    /// A line through points.
    pub fn line(&self, points: &[(i32, i32)], colour: RGBColor, width: u32) -> Result<()> {
        self.put(&PathElement::new(
            points.to_vec(),
            colour.stroke_width(width),
        ))
    }

    /// A filled rectangle.
    pub fn band(&self, corners: [(i32, i32); 2], colour: RGBColor) -> Result<()> {
        self.put(&Rectangle::new(corners, colour.filled()))
    }

    /// A dot; hollow if it must not be taken for a finding.
    pub fn dot(&self, at: (i32, i32), colour: RGBColor, hollow: bool) -> Result<()> {
        let style: ShapeStyle = if hollow {
            colour.stroke_width(3)
        } else {
            colour.filled()
        };
        self.put(&Circle::new(at, 8, style))
    }

    /// A triangle that points beyond the right edge, or the left one.
    pub fn beyond(&self, at: (i32, i32), right: bool, colour: RGBColor) -> Result<()> {
        let (x, y) = at;
        let way = if right { 1 } else { -1 };
        let points = [
            (x - 12 * way, y - 9),
            (x - 12 * way, y + 9),
            (x + 4 * way, y),
        ];
        self.put(&Polygon::new(points, colour.filled()))
    }
}
