//! A picture of a matrix: where its nonzeros are, and the lengths of its rows and columns.

use super::statistics::{Bin, Statistics};
use crate::plot::{self, Drawing};
use crate::terminal::count;
use plotters::prelude::*;
use warprow::CsrMatrix;

/// Cells of the picture along its longer side.
const CELLS: usize = 120;

/// Pixels.
const SIDE: u32 = 640;
const HISTOGRAMS: u32 = 420;

/// The picture, SVG.
pub fn draw(name: &str, a: &CsrMatrix<f32>, found: &Statistics) -> Result<String, String> {
    let title = format!(
        "{name}: {} x {}, {} nonzeros",
        count(a.rows()),
        count(a.cols()),
        count(a.nnz())
    );
    plot::svg((SIDE + HISTOGRAMS, SIDE + 40), &title, |area| {
        let (left, right) = area.split_horizontally(SIDE);
        spy(&left, a)?;
        let panels = right.split_evenly((2, 1));
        lengths(
            &panels[0],
            "nonzeros of a row",
            "rows",
            &found.rows.histogram,
        )?;
        lengths(
            &panels[1],
            "nonzeros of a column",
            "columns",
            &found.columns.histogram,
        )
    })
}

/// A cell for each block of the matrix that has nonzeros, the darker the more.
fn spy(area: &plot::Area<'_>, a: &CsrMatrix<f32>) -> Drawing {
    let (rows, cols) = (a.rows().max(1), a.cols().max(1));
    let block = rows.max(cols).div_ceil(CELLS);
    let (down, across) = (rows.div_ceil(block), cols.div_ceil(block));
    let mut counts = vec![0_u64; down * across];
    for (number, row) in a.outer_iterator().enumerate() {
        for (index, _) in row.iter() {
            counts[number / block * across + index / block] += 1;
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..cols as f64, rows as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(4)
        .y_labels(4)
        .x_label_formatter(&|column| format!("{column:.0}"))
        .y_label_formatter(&|row| format!("{row:.0}"))
        .x_desc("column")
        .y_desc("row")
        .draw()?;
    let cells = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    chart.draw_series(cells.map(|(at, &count)| {
        let (top, left) = (at / across * block, at % across * block);
        // On a logarithmic scale, from light to dark.
        let shade = 0.75 * (1.0 - (1.0 + count as f64).ln() / (1.0 + most).ln());
        let grey = (255.0 * shade) as u8;
        let (bottom, right) = ((top + block).min(rows), (left + block).min(cols));
        let corners = [(left as f64, top as f64), (right as f64, bottom as f64)];
        Rectangle::new(corners, RGBColor(grey, grey, grey).filled())
    }))?;
    Ok(())
}

fn lengths(area: &plot::Area<'_>, x: &str, y: &str, bins: &[Bin]) -> Drawing {
    let label = |bin: &Bin| match bin.least == bin.most {
        true => bin.least.to_string(),
        false => format!("..{}", bin.most),
    };
    let bars = bins.iter().map(|bin| (label(bin), bin.count as f64));
    plot::bars(area, x, y, &bars.collect::<Vec<_>>())
}
