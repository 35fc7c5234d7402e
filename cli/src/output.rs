//! What the command prints: lines for people, or one line of JSON for programs.

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::terminal;
use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::mem;

/// The columns of the labels.
pub const LABEL: usize = 10;

/// The standard output.
pub struct Out {
    stdout: anstream::Stdout,
    json: Option<Map<String, Value>>,
    /// Whether the command goes on if nobody reads what it prints: it writes a file.
    goes_on: bool,
    closed: bool,
}

impl Out {
    /// In the form that the options ask for.
    pub fn new(global: &Global) -> Self {
        Self {
            stdout: anstream::stdout(),
            json: global.json.then(Map::new),
            goes_on: false,
            closed: false,
        }
    }

    /// From now on a reader who leaves does not end the command.
    pub fn go_on_without_reader(&mut self) {
        self.goes_on = true;
    }

    /// A line for people: a label and a text, or no label if the line belongs to the one before it.
    pub fn line(&mut self, label: &str, text: impl Display) -> Result<()> {
        let text = text.to_string();
        let lines = text.lines().enumerate();
        let text: String = lines
            .map(|(at, line)| format!("{:<LABEL$} {line}\n", if at == 0 { label } else { "" }))
            .collect();
        self.text(&text)
    }

    /// A line for people that may be longer than the terminal is wide: it is continued below its beginning.
    pub fn paragraph(&mut self, label: &str, text: impl Display) -> Result<()> {
        let width = terminal::width().saturating_sub(LABEL + 1);
        self.line(label, terminal::wrapped(&text.to_string(), width))
    }

    /// A line for people that says whether a result is right, by its first word.
    pub fn verdict(&mut self, label: &str, right: bool, text: impl Display) -> Result<()> {
        let style = Style::new().fg_color(Some(if right {
            AnsiColor::Green.into()
        } else {
            AnsiColor::Red.into()
        }));
        let text = text.to_string();
        let word = &text[..text.find([':', ' ']).unwrap_or(text.len())];
        // Escapes have no width: the word is coloured when the lines are broken.
        let width = terminal::width().saturating_sub(LABEL + 1);
        let lines = terminal::wrapped(&text, width);
        let rest = &lines[word.len()..];
        self.line(label, format!("{style}{word}{style:#}{rest}"))
    }

    /// Text for people, as it is.
    pub fn text(&mut self, text: &str) -> Result<()> {
        match self.json {
            Some(_) => Ok(()),
            None => self.write(text),
        }
    }

    /// A value for programs.
    pub fn value(&mut self, key: &str, value: impl Into<Value>) {
        if let Some(object) = &mut self.json {
            object.insert(key.to_owned(), value.into());
        }
    }

    /// Prints the values for programs. Lines for people that follow are left out as before.
    pub fn finish(&mut self) -> Result<()> {
        match self.json.as_mut().map(mem::take) {
            Some(object) => self.write(&format!("{}\n", Value::Object(object))),
            None => Ok(()),
        }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let written = self.stdout.write_all(text.as_bytes());
        match written.and_then(|()| self.stdout.flush()) {
            Err(error) if self.goes_on && is_closed(&error) => {
                self.closed = true;
                Ok(())
            }
            written => written.map_err(Failure::Stdout),
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}
