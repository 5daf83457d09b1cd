//! Lines of text on a screen: labelled fields, wrapped sentences, aligned columns.

use anstyle::{AnsiColor, Color, Style};

use crate::screen::Screen;

/// The width of the labels, without the colon.
const LABEL: usize = 10;
/// Where the values of fields begin.
const INDENT: usize = LABEL + 2;

/// With less room than this beside the columns, the rest of a row stands below them.
const NARROWEST_REST: usize = 16;

/// Bold.
pub const BOLD: Style = Style::new().bold();
/// Less important.
pub const DIM: Style = Style::new().dimmed();
/// As it should be.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Worth a look.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// Wrong.
pub const BAD: Style = AnsiColor::Red.on_default();
/// Under way.
pub const BUSY: Style = AnsiColor::Cyan.on_default();
/// Not to be overlooked.
pub const LOUD: Style = Style::new()
    .fg_color(Some(Color::Ansi(AnsiColor::Black)))
    .bg_color(Some(Color::Ansi(AnsiColor::Yellow)));
/// As the terminal has it.
pub const PLAIN: Style = Style::new();

/// The text in a style.
pub fn paint(style: Style, text: &str) -> String {
    if style == PLAIN || text.is_empty() {
        text.to_owned()
    } else {
        format!("{style}{text}{style:#}")
    }
}

/// Breaks text between words. Control characters of whoever wrote it do not reach the terminal.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in clean(text).split_whitespace() {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(last) if line == 0 => last.push_str(word),
            Some(last) if line + 1 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text with control characters replaced by blanks.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Text that grows downwards.
#[derive(Debug)]
pub struct Page<'a> {
    screen: &'a Screen,
    text: String,
}

impl<'a> Page<'a> {
    /// An empty page.
    pub fn new(screen: &'a Screen) -> Self {
        Self { screen, text: String::new() }
    }

    /// Everything so far.
    pub fn into_text(self) -> String {
        self.text
    }

    /// A line as it is.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Wrapped sentences over the whole width, each line in the style.
    pub fn paragraph(&mut self, style: Style, text: &str) {
        for line in wrap(text, self.screen.width) {
            self.line(&paint(style, &line));
        }
    }

    /// `Label: wrapped text`. Nothing if there is no text.
    pub fn field(&mut self, label: &str, text: &str) {
        self.styled_field(label, PLAIN, text);
    }

    /// The same in a style.
    pub fn styled_field(&mut self, label: &str, style: Style, text: &str) {
        if !text.trim().is_empty() {
            let lines = wrap(text, self.room());
            self.field_lines(label, lines.iter().map(|line| paint(style, line)));
        }
    }

    /// `Label:` with lines that are ready.
    pub fn field_lines(&mut self, label: &str, lines: impl IntoIterator<Item = String>) {
        for (number, line) in lines.into_iter().enumerate() {
            let lead = if number == 0 { format!("{label:>LABEL$}: ") } else { " ".repeat(INDENT) };
            self.line(format!("{lead}{line}").trim_end());
        }
    }

    /// `Label:` with aligned columns, the last of which is wrapped.
    pub fn field_table(&mut self, label: &str, rows: &[Row]) {
        let lines = table(rows, self.room());
        self.field_lines(label, lines);
    }

    /// Columns that a value of a field may take.
    fn room(&self) -> usize {
        self.screen.width - INDENT
    }
}

/// A cell with its style.
pub type Cell = (Style, String);

/// Cells of equal rank stand below one another; the last cell has the rest of the line.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Aligned columns.
    pub cells: Vec<Cell>,
    /// Wrapped text.
    pub rest: Cell,
}

impl Row {
    /// A row without text at its end.
    pub fn new(cells: Vec<Cell>) -> Self {
        Self { cells, rest: Cell::default() }
    }

    /// The row with this text at its end.
    pub fn rest(self, style: Style, text: impl Into<String>) -> Self {
        Self { rest: (style, text.into()), ..self }
    }
}

/// The lines of a table that is so wide.
pub fn table(rows: &[Row], width: usize) -> Vec<String> {
    blocks(rows, width).concat()
}

/// The same, the lines of each row apart.
pub fn blocks(rows: &[Row], width: usize) -> Vec<Vec<String>> {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(|column| column_width(rows, column)).collect();
    let taken: usize =
        widths.iter().filter(|width| **width > 0).map(|width| width + gap(*width)).sum();
    rows.iter().map(|row| row_lines(row, &widths, width.saturating_sub(taken), taken)).collect()
}

/// Marks and numbers stand close to what they belong to.
fn gap(width: usize) -> usize {
    if width <= 2 { 1 } else { 2 }
}

fn column_width(rows: &[Row], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.cells.get(column));
    cells.map(|(_, text)| text.chars().count()).max().unwrap_or(0)
}

fn row_lines(row: &Row, widths: &[usize], room: usize, taken: usize) -> Vec<String> {
    let lead = lead(row, widths);
    let (style, rest) = &row.rest;
    let line =
        |lead: &str, text: &str| format!("{lead}{}", paint(*style, text)).trim_end().to_owned();
    if room < NARROWEST_REST && !rest.is_empty() {
        let below = wrap(rest, (room + taken).saturating_sub(2));
        let below = below.iter().map(|text| line("  ", text));
        return std::iter::once(lead.trim_end().to_owned()).chain(below).collect();
    }
    let indent = " ".repeat(taken);
    let lines = wrap(rest, room).into_iter().enumerate();
    lines.map(|(number, text)| line(if number == 0 { &lead } else { &indent }, &text)).collect()
}

/// The aligned cells.
fn lead(row: &Row, widths: &[usize]) -> String {
    let mut lead = String::new();
    for ((style, text), width) in row.cells.iter().zip(widths).filter(|(_, width)| **width > 0) {
        let text = clean(text);
        let padding = " ".repeat(width - text.chars().count() + gap(*width));
        lead.extend([paint(*style, &text), padding]);
    }
    lead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_longer_than_the_line_stand_alone() {
        assert_eq!(wrap("a verylongword b", 6), ["a", "verylongword", "b"]);
        assert_eq!(wrap("", 6), [""]);
    }

    #[test]
    fn escape_sequences_of_others_do_not_reach_the_terminal() {
        assert_eq!(wrap("a\x1b[2Jb\nc", 80), ["a [2Jb c"]);
    }

    #[test]
    fn without_room_beside_the_columns_the_rest_stands_below_them() {
        let row = Row::new(vec![(PLAIN, "a_long_name".to_owned())]).rest(PLAIN, "one two three");
        assert_eq!(table(&[row], 14), ["a_long_name", "  one two", "  three"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_the_rest_hangs() {
        let row =
            |name: &str, rest: &str| Row::new(vec![(PLAIN, name.to_owned())]).rest(PLAIN, rest);
        let lines = table(&[row("ab", "one two three four five"), row("abcd", "x")], 22);
        assert_eq!(lines, ["ab    one two three", "      four five", "abcd  x"]);
    }
}
