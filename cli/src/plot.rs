//! Pictures in SVG.

use plotters::coord::Shift;
use plotters::prelude::*;

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The result of drawing.
pub type Drawing = Result<(), Box<dyn std::error::Error>>;

/// The height of the title, in pixels.
const TITLE: u32 = 40;

/// A picture with a title, of that size in pixels; or why it could not be drawn.
pub fn svg(
    size: (u32, u32),
    title: &str,
    draw: impl FnOnce(&Area<'_>) -> Drawing,
) -> Result<String, String> {
    let mut text = String::new();
    let drawn = (|| -> Drawing {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, body) = root.split_vertically(TITLE);
        head.draw(&Text::new(
            title.to_owned(),
            (14, 12),
            ("sans-serif", 17).into_font(),
        ))?;
        draw(&body)?;
        root.present()?;
        Ok(())
    })();
    drawn.map_err(|error| format!("cannot draw the picture: {error}"))?;
    Ok(text)
}

/// Bars from left to right, each with its name on the left and its length at its end; that of the name `first` is
/// darker.
#[cfg(feature = "bench")]
pub fn rows(area: &Area<'_>, title: &str, bars: &[(String, f64)], first: &str) -> Drawing {
    /// Pixels for the names, and for the lengths.
    const NAMES: i32 = 180;
    const LENGTHS: i32 = 90;
    let (width, height) = area.dim_in_pixel();
    let font = ("sans-serif", 13).into_font();
    area.draw(&Text::new(
        title.to_owned(),
        (14, 4),
        ("sans-serif", 15).into_font(),
    ))?;
    let most = bars
        .iter()
        .map(|bar| bar.1)
        .fold(f64::MIN_POSITIVE, f64::max);
    let room = f64::from(width as i32 - NAMES - LENGTHS);
    let step = (height as i32 - 28) / bars.len().max(1) as i32;
    for (at, (name, length)) in bars.iter().enumerate() {
        let top = 26 + at as i32 * step;
        let end = NAMES + (room * length / most) as i32;
        let color = if name == first {
            BLUE.mix(0.9)
        } else {
            BLUE.mix(0.4)
        };
        area.draw(&Text::new(name.clone(), (14, top), font.clone()))?;
        let bar = Rectangle::new([(NAMES, top), (end, top + step - 3)], color.filled());
        area.draw(&bar)?;
        area.draw(&Text::new(
            format!("{length:.4}"),
            (end + 6, top),
            font.clone(),
        ))?;
    }
    Ok(())
}

/// Bars with their names, from zero.
pub fn bars(area: &Area<'_>, x: &str, y: &str, bars: &[(String, f64)]) -> Drawing {
    let most = bars
        .iter()
        .map(|bar| bar.1)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..bars.len().max(1) as f64, 0.0..1.05 * most)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(6)
        .y_label_formatter(&|height| format!("{height:.0}"))
        .light_line_style(TRANSPARENT)
        .x_desc(x)
        .y_desc(y)
        .draw()?;
    let whole = |(at, (_, height)): (usize, &(String, f64))| {
        let left = at as f64;
        Rectangle::new(
            [(left + 0.1, 0.0), (left + 0.9, *height)],
            BLUE.mix(0.6).filled(),
        )
    };
    chart.draw_series(bars.iter().enumerate().map(whole))?;
    let style = TextStyle::from(("sans-serif", 11)).pos(text_anchor());
    // Names that have no room are left out.
    let step = bars.len().div_ceil(10).max(1);
    for (at, (name, _)) in bars.iter().enumerate().step_by(step) {
        let below = EmptyElement::at((at as f64 + 0.5, 0.0))
            + Text::new(name.clone(), (0, 5), style.clone());
        chart.plotting_area().draw(&below)?;
    }
    Ok(())
}

fn text_anchor() -> plotters::style::text_anchor::Pos {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    Pos::new(HPos::Center, VPos::Top)
}
