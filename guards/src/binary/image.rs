//! Reads an ELF file into what the layers need, and refuses what is not one.

use object::elf;
use object::read::elf::ElfFile64;
use object::{
    Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags,
};
use std::fmt::Write as _;

/// Largest file that is read; a daemon's binary of this size is unheard of.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 30;

/// Sections that are looked at for one address. In a linked program they do not
/// overlap; a file that is made to be bad must not cost a scan of all of them.
const OVERLAP_MAX: usize = 4;

/// Tag of a library that is needed at start, by the System V ABI.
const DT_NEEDED: u64 = 1;

/// How the program was linked, which decides where its pointers are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Position independent: every pointer in data has a relocation.
    Pie,
    /// At fixed addresses: pointers in data look like any other word.
    Fixed,
}

/// A section that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section<'d> {
    pub(crate) name: String,
    pub(crate) address: u64,
    /// Bytes in memory.
    pub(crate) size: u64,
    /// Bytes in the file; empty for `.bss`.
    pub(crate) bytes: &'d [u8],
    pub(crate) executable: bool,
}

impl Section<'_> {
    /// Whether `address` is inside.
    pub(crate) fn contains(&self, address: u64) -> bool {
        address >= self.address && address - self.address < self.size
    }

    /// First address behind the section.
    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// Kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolKind {
    Function,
    Object,
    /// Untyped, in code: hand-written assembly.
    Label,
    /// Name of a source file.
    File,
}

/// A defined symbol.
#[derive(Debug, Clone)]
pub(crate) struct Symbol<'d> {
    pub(crate) name: &'d str,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: SymbolKind,
}

/// A relocation, dynamic or kept by `--emit-relocs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relocation {
    /// Address that it changes.
    pub(crate) place: u64,
    /// Value of its symbol plus addend; for PC-relative ones relative to the place.
    pub(crate) target: u64,
    /// Type by the x86-64 psABI.
    pub(crate) kind: u32,
}

/// A linked program.
pub(crate) struct Image<'d> {
    pub(crate) link: Link,
    pub(crate) entry: u64,
    /// Sorted by address.
    pub(crate) sections: Vec<Section<'d>>,
    /// Sorted by address, then name.
    pub(crate) symbols: Vec<Symbol<'d>>,
    /// Applied when the program is loaded; sorted by place.
    pub(crate) dynamic: Vec<Relocation>,
    /// Kept by `--emit-relocs`; sorted by place, empty without.
    pub(crate) emitted: Vec<Relocation>,
    /// Libraries needed at start (`DT_NEEDED`), sorted.
    pub(crate) needed: Vec<String>,
    /// Names of undefined dynamic symbols, sorted.
    pub(crate) imports: Vec<String>,
    pub(crate) build_id: Option<String>,
    /// Whether there is a symbol table (not stripped).
    pub(crate) has_symtab: bool,
}

/// Why a file is no program to judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageError {
    #[error("is empty")]
    Empty,
    #[error("is not an ELF file ({looks}); only ELF programs for x86-64 can be judged")]
    NotElf { looks: &'static str },
    #[error("is an ELF file for {architecture}; only x86-64 can be judged")]
    Architecture { architecture: String },
    #[error("is {kind}, not a linked program")]
    Kind { kind: &'static str },
    #[error("is a damaged or truncated ELF file: {message}")]
    Damaged { message: String },
}

/// Reads `data` as a linked program.
///
/// # Errors
/// When it is another format, architecture or kind, or damaged.
pub(crate) fn read(data: &[u8]) -> Result<Image<'_>, ImageError> {
    let (file, link) = open(data)?;
    let sections = code_and_data(&file)?;
    let (dynamic, emitted) = super::pointers::relocations(&file, data)?;
    Ok(Image {
        link,
        entry: file.entry(),
        sections,
        symbols: symbols(&file),
        dynamic,
        emitted,
        needed: needed(&file),
        imports: imports(&file),
        build_id: build_id(&file),
        has_symtab: file.symbol_table().is_some(),
    })
}

/// Reads only what two programs that are one build have in common.
///
/// # Errors
/// As [`read`].
pub(super) fn read_loaded(data: &[u8]) -> Result<(Option<String>, Vec<Section<'_>>), ImageError> {
    let (file, _) = open(data)?;
    Ok((build_id(&file), code_and_data(&file)?))
}

fn open(data: &[u8]) -> Result<(ElfFile64<'_, Endianness>, Link), ImageError> {
    check_magic(data)?;
    let file = ElfFile64::<Endianness>::parse(data).map_err(damaged)?;
    if file.architecture() != Architecture::X86_64 {
        return Err(ImageError::Architecture {
            architecture: format!("{:?}", file.architecture()).to_lowercase(),
        });
    }
    let kind = match file.kind() {
        ObjectKind::Executable => return Ok((file, Link::Fixed)),
        ObjectKind::Dynamic => return Ok((file, Link::Pie)),
        ObjectKind::Relocatable => "an object file",
        ObjectKind::Core => "a core dump",
        _ => "of an unknown kind",
    };
    Err(ImageError::Kind { kind })
}

fn code_and_data<'d>(file: &ElfFile64<'d, Endianness>) -> Result<Vec<Section<'d>>, ImageError> {
    let sections = sections(file)?;
    if sections.iter().any(|section| section.executable) {
        Ok(sections)
    } else {
        Err(ImageError::Damaged {
            message: "it has no section with code".to_owned(),
        })
    }
}

fn build_id(file: &ElfFile64<'_, Endianness>) -> Option<String> {
    file.build_id().ok().flatten().map(hex)
}

pub(super) fn damaged(error: object::Error) -> ImageError {
    ImageError::Damaged {
        message: error.to_string(),
    }
}

/// Tells other formats apart by their first bytes, for a sentence that helps.
fn check_magic(data: &[u8]) -> Result<(), ImageError> {
    let looks = match data {
        [] => return Err(ImageError::Empty),
        [0x7f, b'E', b'L', b'F', 2, 1, ..] => return Ok(()),
        [0x7f, b'E', b'L', b'F', 1, ..] => {
            return Err(ImageError::Architecture {
                architecture: "a 32-bit machine".to_owned(),
            });
        }
        [0x7f, b'E', b'L', b'F', 2, 2, ..] => {
            return Err(ImageError::Architecture {
                architecture: "a big-endian machine".to_owned(),
            });
        }
        [0x7f, b'E', b'L', b'F', ..] => {
            return Err(ImageError::Damaged {
                message: "its header is cut short".to_owned(),
            });
        }
        [0xcf, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => "it looks like Mach-O",
        [b'M', b'Z', ..] => "it looks like a Windows program",
        [b'!', b'<', b'a', b'r', ..] => "it looks like an archive",
        [0, b'a', b's', b'm', ..] => "it looks like WebAssembly",
        [b'#', b'!', ..] => "it looks like a script",
        _ => "its first bytes are not those of a program",
    };
    Err(ImageError::NotElf { looks })
}

fn sections<'d>(file: &ElfFile64<'d, Endianness>) -> Result<Vec<Section<'d>>, ImageError> {
    let mut list = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            continue;
        };
        // Thread-local zeroes overlap what follows and hold no pointers.
        let is_tbss = sh_flags.0 & elf::SHF_TLS.0 != 0 && section.file_range().is_none();
        if sh_flags.0 & elf::SHF_ALLOC.0 == 0 || section.size() == 0 || is_tbss {
            continue;
        }
        if section.address().checked_add(section.size()).is_none() {
            return Err(ImageError::Damaged {
                message: "a section ends behind the last address".to_owned(),
            });
        }
        list.push(Section {
            name: section.name().unwrap_or("").to_owned(),
            address: section.address(),
            size: section.size(),
            bytes: section.data().map_err(damaged)?,
            executable: sh_flags.0 & elf::SHF_EXECINSTR.0 != 0,
        });
    }
    list.sort_by_key(|section| (section.address, section.size));
    Ok(list)
}

fn symbols<'d>(file: &ElfFile64<'d, Endianness>) -> Vec<Symbol<'d>> {
    let mut list: Vec<Symbol<'d>> = file
        .symbols()
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            let kind = match symbol.kind() {
                object::SymbolKind::File => SymbolKind::File,
                _ if symbol.is_undefined() => return None,
                object::SymbolKind::Text => SymbolKind::Function,
                object::SymbolKind::Data | object::SymbolKind::Tls => SymbolKind::Object,
                object::SymbolKind::Unknown | object::SymbolKind::Label => SymbolKind::Label,
                _ => return None,
            };
            // Thread-local symbols have offsets, not addresses.
            (symbol.kind() != object::SymbolKind::Tls).then(|| Symbol {
                name,
                address: symbol.address(),
                size: symbol.size(),
                kind,
            })
        })
        .collect();
    list.sort_by(|a, b| (a.address, a.name).cmp(&(b.address, b.name)));
    list
}

fn imports(file: &ElfFile64<'_, Endianness>) -> Vec<String> {
    let mut list: Vec<String> = file
        .dynamic_symbols()
        .filter(ObjectSymbol::is_undefined)
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    list.sort();
    list.dedup();
    list
}

/// Reads `DT_NEEDED` through the section headers; a damaged table counts as none.
fn needed(file: &ElfFile64<'_, Endianness>) -> Vec<String> {
    let read_u64 = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let data = |name| {
        file.section_by_name(name)
            .and_then(|section| section.data().ok())
            .unwrap_or(&[])
    };
    let strings = data(".dynstr");
    let mut list: Vec<String> = data(".dynamic")
        .chunks_exact(16)
        .map(|entry| (read_u64(&entry[..8]), read_u64(&entry[8..])))
        .filter(|(tag, _)| *tag == DT_NEEDED)
        .filter_map(|(_, offset)| strings.get(usize::try_from(offset).ok()?..))
        .filter_map(|rest| rest.split(|byte| *byte == 0).next())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    list.sort();
    list.dedup();
    list
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Image<'_> {
    /// The loaded section that holds `address`.
    pub(crate) fn section_at(&self, address: u64) -> Option<&Section<'_>> {
        self.section_index(address)
            .map(|index| &self.sections[index])
    }

    /// Its index.
    pub(crate) fn section_index(&self, address: u64) -> Option<usize> {
        let after = self
            .sections
            .partition_point(|section| section.address <= address);
        (after.saturating_sub(OVERLAP_MAX)..after)
            .rev()
            .find(|index| self.sections[*index].contains(address))
    }

    /// Bytes of code.
    pub(crate) fn code_bytes(&self) -> u64 {
        self.sections
            .iter()
            .filter(|section| section.executable)
            .fold(0, |sum, section| sum.saturating_add(section.size))
    }

    /// The bytes at `address`, as far as one section's file content goes.
    pub(crate) fn bytes_at(&self, address: u64, length: usize) -> Option<&[u8]> {
        let section = self.section_at(address)?;
        let from = usize::try_from(address - section.address).ok()?;
        section.bytes.get(from..from.checked_add(length)?)
    }
}
