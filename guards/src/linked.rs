//! Layer `linked`: which packages the linker was given, and their bytes in its map.
//!
//! The list is what `rustc --print=link-args` wrote for this very link. Link-time
//! optimisation merges packages before the linker sees them; then this layer says so.

use crate::layer::{Judgement, Subject};
use crate::packages::{Built, Closure, Workspace, matching_known};
use crate::policy::{Denied, DenyRule};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};
use std::path::Path;

/// What the linker was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Linked {
    /// Ids of packages whose library was an argument.
    pub(crate) packages: BTreeSet<String>,
    /// Bytes in the output by id; empty without a map or with merged packages.
    pub(crate) bytes: BTreeMap<String, u64>,
}

/// Reads the arguments and, where there are any, the bytes of each library as
/// [`sum_map`] wrote them. `None` when the arguments name no library of the
/// closure: everything was merged before.
pub(crate) fn read(link_args: &str, link_bytes: Option<&str>, built: &Built) -> Option<Linked> {
    let by_file: BTreeMap<&str, &str> = built
        .packages
        .iter()
        .flat_map(|(id, package)| package.files.iter().map(move |file| (id.as_str(), file)))
        .filter_map(|(id, file)| Some((file_name(file)?, id)))
        .collect();
    let packages: BTreeSet<String> = link_args
        .split(['"', ' ', '\n', '\''])
        .filter_map(|word| by_file.get(file_name(Path::new(word))?))
        .map(|id| (*id).to_owned())
        .collect();
    let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
    for line in link_bytes.unwrap_or_default().lines() {
        let Some((size, file)) = line.split_once('\t') else {
            continue;
        };
        if let (Ok(size), Some(id)) = (size.parse::<u64>(), by_file.get(file)) {
            let sum = bytes.entry((*id).to_owned()).or_default();
            *sum = sum.saturating_add(size);
        }
    }
    (!packages.is_empty()).then_some(Linked { packages, bytes })
}

fn file_name(file: &Path) -> Option<&str> {
    file.file_name()?.to_str()
}

/// Sums what each library contributed by the linker's map: lines of `BYTES\tFILE`, by
/// file. A map names every symbol and is larger than the program, so it is read once,
/// when it was made.
///
/// LLD's lines are `VMA LMA SIZE ALIGN FILE:(SECTION)` with hexadecimal numbers; other
/// lines are headings and symbols, and other linkers' maps give nothing.
///
/// # Errors
/// Those of `map`.
pub(crate) fn sum_map(mut map: impl BufRead) -> io::Result<String> {
    let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if map.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if let Some((file, size)) = std::str::from_utf8(&line).ok().and_then(read_line) {
            let sum = bytes.entry(file).or_default();
            *sum = sum.saturating_add(size);
        }
    }
    let lines = bytes.iter().map(|(file, sum)| format!("{sum}\t{file}\n"));
    Ok(lines.collect())
}

fn read_line(line: &str) -> Option<(String, u64)> {
    let (columns, member) = line.split_once(".rlib(")?;
    if !member.contains(":(") {
        return None;
    }
    let mut words = columns.split_whitespace();
    let size = u64::from_str_radix(words.nth(2)?, 16).ok()?;
    let file = words.nth(1)?.rsplit('/').next()?;
    Some((format!("{file}.rlib"), size))
}

/// Judges one rule; `linked` is none when the layer cannot see.
pub(crate) fn judge(
    linked: Option<&Linked>,
    workspace: &Workspace,
    closure: &Closure,
    closure_is_certain: bool,
    rule: &DenyRule,
) -> Judgement {
    if matches!(rule.what, Denied::Symbol { .. }) {
        return Judgement::not_asked();
    }
    let matching = matching_known(workspace, rule);
    let in_closure = matching
        .iter()
        .any(|package| closure.packages.contains_key(&package.id) && package.id != closure.program);
    let Some(linked) = linked else {
        return if closure_is_certain && !in_closure {
            Judgement::absent()
        } else {
            Judgement::inconclusive(
                "the linker's arguments name no package: they were merged before the link, or several programs were built at once",
            )
        };
    };
    let subjects = matching
        .into_iter()
        .filter(|package| package.id != closure.program && linked.packages.contains(&package.id))
        .map(|package| Subject {
            name: package.label(),
            evidence: vec![match linked.bytes.get(&package.id) {
                Some(bytes) => format!("its library was linked, {bytes} bytes by the linker's map"),
                None => "its library was given to the linker".to_owned(),
            }],
            route: Vec::new(),
            more_routes: Vec::new(),
        })
        .collect();
    Judgement::from_subjects(subjects)
}

#[cfg(test)]
mod tests {
    use super::{read, sum_map};
    use crate::packages::Built;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    fn built() -> Built {
        let mut built = Built::default();
        for (id, file) in [
            ("a", "/t/deps/liba-0123456789abcdef.rlib"),
            ("b", "/t/deps/libb-0123456789abcdef.rlib"),
        ] {
            let package = built.packages.entry(id.to_owned()).or_default();
            package.files.insert(PathBuf::from(file));
        }
        built
    }

    #[test]
    fn libraries_are_found_among_the_arguments_and_in_the_map() {
        let args = r#"LC_ALL="C" "cc" "-m64" "/t/a.o" "/t/deps/liba-0123456789abcdef.rlib" "-lc""#;
        let map = "             VMA              LMA     Size Align Out     In      Symbol\n\
            1000 1000 20 16         /t/deps/liba-0123456789abcdef.rlib(a.o):(.text.f)\n\
            1000 1000 20 1                 a::f\n\
            1020 1020 10 16         /t/deps/liba-0123456789abcdef.rlib(a.o):(.text.g)\n";
        let bytes = sum_map(map.as_bytes()).unwrap();
        assert_eq!(bytes, "48\tliba-0123456789abcdef.rlib\n");
        let linked = read(args, Some(&bytes), &built()).unwrap();
        assert_eq!(linked.packages, BTreeSet::from(["a".to_owned()]));
        // 0x20 + 0x10.
        assert_eq!(linked.bytes, BTreeMap::from([("a".to_owned(), 48)]));
    }

    #[test]
    fn a_link_without_libraries_is_no_answer() {
        assert!(read(r#""cc" "/t/a.o""#, None, &built()).is_none());
    }
}
