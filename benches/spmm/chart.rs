//! The chart of a file of results: a panel for each kind, a group of bars for each graph, a bar for each width.

use crate::spmm::cases::{GRAPHS, Kind};
use crate::spmm::ratios::{Mean, Ratios, distinct};
use crate::spmm::results;
use anyhow::{anyhow, ensure};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// The chart's width, and the heights of its parts, in pixels.
const WIDTH: u32 = 1400;
const TITLE_HEIGHT: u32 = 64;
const PANEL_HEIGHT: u32 = 260;

/// The part of a graph's place that its bars take.
const GROUP: f64 = 0.84;

/// From narrow to wide X, told apart in grey and by colour-blind eyes too: the map viridis.
const COLORS: ViridisRGB = ViridisRGB;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws the results of one element type.
///
/// # Errors
///
/// Results that [`results::read`] refuses, or none with a ratio to cuSPARSE; a chart that cannot be written.
pub fn draw(from: &Path, svg: &Path, element: &str) -> anyhow::Result<()> {
    let (records, _) = results::read(from)?;
    let device = records.first().map_or("", |record| record.device.as_str());
    let mut ratios = Ratios::of(&records);
    ratios.retain(|case| case.element == element && case.to_cusparse.is_some());
    ensure!(
        !ratios.is_empty(),
        "{}: wanted times in {element} of this crate and of cuSPARSE, found none",
        from.display()
    );
    let chart = Bars::of(ratios, format!("SpMM on {device}, {element}"));
    // The errors of the library name neither the file nor the cause's type.
    chart
        .draw(svg)
        .map_err(|error| anyhow!("cannot draw {}: {error}", svg.display()))
}

/// What is drawn.
struct Bars {
    ratios: Vec<Ratios>,
    title: String,
    kinds: Vec<String>,
    graphs: Vec<String>,
    widths: Vec<u32>,
    highest: f64,
}

impl Bars {
    fn of(ratios: Vec<Ratios>, title: String) -> Self {
        let mut kinds = distinct(&ratios, |case| case.kind.clone());
        kinds.sort_by_key(|kind| Kind::ALL.iter().position(|known| known.name() == kind));
        let mut graphs = distinct(&ratios, |case| case.graph.clone());
        // By nonzeros, so that what is alike stands together.
        graphs.sort_by_key(|name| {
            let known = GRAPHS.iter().find(|graph| graph.name == name);
            known.map(|graph| graph.nonzeros)
        });
        let mut widths = distinct(&ratios, |case| case.features);
        widths.sort_unstable();
        let highest = ratios.iter().filter_map(|case| case.to_cusparse);
        Self {
            highest: highest.fold(1.0, f64::max) * 1.05,
            ratios,
            title,
            kinds,
            graphs,
            widths,
        }
    }

    fn draw(&self, svg: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let height = TITLE_HEIGHT + PANEL_HEIGHT * self.kinds.len() as u32;
        let root = SVGBackend::new(svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, panels) = root.split_vertically(TITLE_HEIGHT);
        self.draw_head(&head)?;
        for (kind, panel) in self
            .kinds
            .iter()
            .zip(panels.split_evenly((self.kinds.len(), 1)))
        {
            self.draw_panel(kind, &panel)?;
        }
        root.present()?;
        Ok(())
    }

    /// The title, and the legend of the widths.
    fn draw_head(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let title = format!(
            "{}: times as fast as the best algorithm of cuSPARSE",
            self.title
        );
        let large = ("sans-serif", 20).into_font();
        area.draw(&Text::new(title, (16, 10), large))?;
        let small = ("sans-serif", 14).into_font();
        area.draw(&Text::new(
            "features (columns of X):",
            (16, 40),
            small.clone(),
        ))?;
        for (place, width) in self.widths.iter().enumerate() {
            let left = 190 + 80 * place as i32;
            let color = self.color(place).filled();
            area.draw(&Rectangle::new([(left, 40), (left + 14, 54)], color))?;
            area.draw(&Text::new(
                width.to_string(),
                (left + 20, 40),
                small.clone(),
            ))?;
        }
        let left = 190 + 80 * self.widths.len() as i32;
        let line = vec![(left, 47), (left + 28, 47)];
        area.draw(&PathElement::new(line, RED.stroke_width(2)))?;
        let words = "as fast as cuSPARSE (1.0)";
        area.draw(&Text::new(words, (left + 34, 40), small))?;
        Ok(())
    }

    fn draw_panel(&self, kind: &str, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let of_kind: Vec<&Ratios> = self
            .ratios
            .iter()
            .filter(|case| case.kind == kind)
            .collect();
        let caption = match Mean::of(of_kind.iter().filter_map(|case| case.to_cusparse)) {
            Some(mean) => format!(
                "{kind}: geometric mean {:.2} of {} cases, least {:.2}",
                mean.mean, mean.count, mean.least
            ),
            None => kind.to_owned(),
        };
        let mut chart = ChartBuilder::on(area)
            .margin_left(10)
            .margin_right(16)
            .caption(caption, ("sans-serif", 15))
            .x_label_area_size(28)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..self.graphs.len() as f64, 0.0..self.highest)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .x_labels(0)
            .y_labels(8)
            .y_label_formatter(&|ratio| format!("{ratio:.1}"))
            .y_desc("times as fast")
            .label_style(("sans-serif", 13))
            .light_line_style(TRANSPARENT)
            .draw()?;
        chart.draw_series(of_kind.iter().filter_map(|case| self.bar(case)))?;
        let ends = [(0.0, 1.0), (self.graphs.len() as f64, 1.0)];
        chart.draw_series(LineSeries::new(ends, RED.stroke_width(2)))?;
        self.draw_names(&chart)
    }

    /// The graphs' names, below their groups.
    fn draw_names(&self, chart: &Chart<'_, '_>) -> Result<(), Box<dyn std::error::Error>> {
        let style = TextStyle::from(("sans-serif", 13)).pos(Pos::new(HPos::Center, VPos::Top));
        for (place, name) in self.graphs.iter().enumerate() {
            let below = EmptyElement::at((place as f64 + 0.5, 0.0))
                + Text::new(name.clone(), (0, 6), style.clone());
            chart.plotting_area().draw(&below)?;
        }
        Ok(())
    }

    /// The bar of a case.
    fn bar(&self, case: &Ratios) -> Option<Rectangle<(f64, f64)>> {
        let graph = self.graphs.iter().position(|graph| *graph == case.graph)?;
        let width = self
            .widths
            .iter()
            .position(|width| *width == case.features)?;
        let step = GROUP / self.widths.len() as f64;
        let left = graph as f64 + (1.0 - GROUP) / 2.0 + width as f64 * step;
        let corners = [(left, 0.0), (left + 0.9 * step, case.to_cusparse?)];
        Some(Rectangle::new(corners, self.color(width).filled()))
    }

    fn color(&self, width: usize) -> RGBColor {
        // Not up to the map's end, which is too light on white.
        let most = self.widths.len().max(2) as f64 - 1.0;
        COLORS.get_color(0.9 * width as f64 / most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(graph: &str, kind: &str, features: u32, implementation: &str, ms: f64) -> String {
        let version = match implementation {
            "warprow" => "",
            _ => r#""cusparse":"12.6.3","#,
        };
        format!(
            concat!(
                r#"{{"graph":"{graph}","kind":"{kind}","features":{features},"type":"f32","#,
                r#""impl":"{implementation}",{version}"ms":{ms},"ok":true,"device":"some GPU"}}"#,
                "\n",
            ),
            graph = graph,
            kind = kind,
            features = features,
            implementation = implementation,
            version = version,
            ms = ms,
        )
    }

    fn drawn(lines: &[String], element: &str) -> anyhow::Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let (from, svg) = (folder.path().join("a.jsonl"), folder.path().join("a.svg"));
        std::fs::write(&from, lines.concat()).unwrap();
        draw(&from, &svg, element)?;
        Ok(std::fs::read_to_string(svg).unwrap())
    }

    #[test]
    fn a_chart_has_a_panel_a_kind_a_bar_a_case_and_the_names() {
        let lines = [
            line("ppa", "uniform", 32, "warprow", 1.0),
            line("ppa", "uniform", 32, "cusparse_default", 2.0),
            line("ddi", "rmat57", 32, "warprow", 1.0),
            line("ddi", "rmat57", 32, "cusparse_default", 0.5),
            line("ddi", "rmat57", 100, "warprow", 1.0),
            line("ddi", "rmat57", 100, "cusparse_default", 1.5),
            // Without a time of cuSPARSE there is no bar.
            line("arxiv", "rmat35", 32, "warprow", 1.0),
        ];
        let svg = drawn(&lines, "f32").unwrap();
        for text in [
            "SpMM on some GPU, f32",
            "rmat57: geometric mean 0.87 of 2 cases, least 0.50",
            "uniform: geometric mean 2.00 of 1 cases, least 2.00",
            "ppa",
            "ddi",
            "100",
            "times as fast",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("arxiv"));
        // The background, two colours of the legend, three bars.
        assert_eq!(svg.matches("<rect").count(), 1 + 2 + 3);
        assert_eq!(svg.matches("stroke=\"#FF0000\"").count(), 1 + 2);
    }

    #[test]
    fn results_without_ratios_of_the_type_are_refused() {
        let lines = [line("ppa", "uniform", 32, "warprow", 1.0)];
        for element in ["f32", "f64"] {
            let error = drawn(&lines, element).unwrap_err().to_string();
            assert!(error.contains("a.jsonl: wanted times"), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none.jsonl");
        let error = draw(&missing, &missing, "f32").unwrap_err();
        assert!(format!("{error:#}").contains("none.jsonl"), "{error:#}");
    }
}
