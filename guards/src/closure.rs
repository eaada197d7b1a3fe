//! `guard closure`: the packages of a program with their features and bytes.
//!
//! Bytes are printed with the method that counted them; figures of two methods are
//! not comparable, and no method is used in place of another without saying so.

use crate::app::{AppError, chosen_paths, need_evidence};
use crate::check::{Inspection, inspect};
use crate::cli::ClosureArgs;
use crate::exit;
use crate::policy::{Program, fold_name};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Prints one table for each program of the chosen paths.
///
/// # Errors
/// When there is no build to look at.
pub(crate) fn run(args: &ClosureArgs, out: &mut dyn Write) -> Result<u8, AppError> {
    let mut done: BTreeSet<Program> = BTreeSet::new();
    for path in chosen_paths(&args.common)? {
        if !done.insert(path.program.clone()) {
            continue;
        }
        let evidence = need_evidence(&args.common, &path)?;
        let seen = inspect(&evidence, &path.program).map_err(|source| AppError::Inspect {
            path: path.name.clone(),
            source,
        })?;
        write_table(&seen, &path.program, out)?;
    }
    Ok(exit::OK)
}

/// How bytes were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    LinkerMap,
    Symbols,
    None,
}

impl Method {
    fn of(seen: &Inspection<'_>) -> Self {
        if seen
            .linked
            .as_ref()
            .is_some_and(|linked| !linked.bytes.is_empty())
        {
            Self::LinkerMap
        } else if seen.presence.symbols.is_some() {
            Self::Symbols
        } else {
            Self::None
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::LinkerMap => {
                "bytes: by library in the linker's map, after unused sections were removed"
            }
            Self::Symbols => {
                "bytes: of symbols whose names mention the crate; one symbol counts for every crate that it mentions"
            }
            Self::None => {
                "bytes: not known, there is neither a linker's map by library nor a symbol"
            }
        }
    }
}

fn bytes_of(
    seen: &Inspection<'_>,
    method: Method,
    id: &str,
    lib_name: Option<&str>,
) -> Option<u64> {
    match method {
        Method::LinkerMap => seen.linked.as_ref()?.bytes.get(id).copied(),
        Method::Symbols => {
            let wanted = fold_name(lib_name?);
            let roots = &seen.presence.symbols.as_ref()?.roots;
            roots
                .iter()
                .find(|(root, _)| fold_name(root) == wanted)
                .map(|(_, found)| found.bytes)
        }
        Method::None => None,
    }
}

fn write_table(seen: &Inspection<'_>, program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let method = Method::of(seen);
    let mut rows: Vec<[String; 4]> = Vec::new();
    for (id, features) in &seen.closure.packages {
        let Some(package) = seen.workspace.known.get(id) else {
            continue;
        };
        let bytes = bytes_of(seen, method, id, package.lib_name.as_deref());
        rows.push([
            package.label(),
            package.origin.name().to_owned(),
            bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
            features.iter().cloned().collect::<Vec<_>>().join(" "),
        ]);
    }
    rows.sort();
    writeln!(
        out,
        "{} of {}: {} packages, {}",
        program.bin,
        program.package,
        rows.len(),
        if seen.difference.is_empty() {
            "as cargo built them"
        } else {
            "NOT as cargo built them"
        }
    )?;
    writeln!(out, "{}", method.describe())?;
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (name, origin, bytes) = (width(0), width(1).max(6), width(2).max(5));
    writeln!(
        out,
        "{:name$}  {:origin$}  {:>bytes$}  features",
        "package", "origin", "bytes"
    )?;
    for [label, from, size, features] in &rows {
        let line = format!("{label:name$}  {from:origin$}  {size:>bytes$}  {features}");
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out)
}
