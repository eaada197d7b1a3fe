//! Where the loaded data holds addresses: relocations, or words that look like one.

use super::image::{Image, ImageError, Link, Relocation, damaged};
use object::Endianness;
use object::elf;
use object::read::elf::{ElfFile64, Rela, SectionHeader, Sym};

/// A word in data that holds an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pointer {
    /// Where it is.
    pub(crate) place: u64,
    /// What it holds once the program is loaded.
    pub(crate) target: u64,
}

/// All pointers in data, sorted by place.
///
/// In a position independent program these are its relocations, exactly. At fixed
/// addresses they are the aligned words that are an address of some section: more
/// than there are, never fewer (a packed structure aside).
pub(crate) fn pointers(image: &Image<'_>) -> Vec<Pointer> {
    let mut list: Vec<Pointer> = image
        .dynamic
        .iter()
        .map(|relocation| Pointer {
            place: relocation.place,
            target: relocation.target,
        })
        .collect();
    if image.link == Link::Fixed {
        list.extend(words(image));
    }
    list.sort();
    list.dedup();
    list
}

fn words<'i>(image: &'i Image<'_>) -> impl Iterator<Item = Pointer> + 'i {
    let lowest = image.sections.first().map_or(0, |section| section.address);
    let highest = image.sections.iter().map(super::Section::end).max();
    let range = lowest..highest.unwrap_or(0);
    let data = image.sections.iter().filter(|section| !section.executable);
    data.flat_map(move |section| {
        let range = range.clone();
        // Sections end at or before the last address, so this cannot overflow.
        let skew = section.address.wrapping_neg() % 8;
        let aligned = usize::try_from(skew)
            .ok()
            .and_then(|skew| section.bytes.get(skew..))
            .unwrap_or(&[]);
        let places = (0_u64..).map(move |index| section.address + skew + index * 8);
        aligned
            .chunks_exact(8)
            .zip(places)
            .filter_map(move |(word, place)| {
                let target = u64::from_le_bytes(word.try_into().ok()?);
                (range.contains(&target) && image.section_at(target).is_some())
                    .then_some(Pointer { place, target })
            })
    })
}

type Relocations = (Vec<Relocation>, Vec<Relocation>);

/// The relocations of loading and those kept by the linker.
pub(super) fn relocations(
    file: &ElfFile64<'_, Endianness>,
    data: &[u8],
) -> Result<Relocations, ImageError> {
    let endian = file.endian();
    let table = file.elf_section_table();
    let (mut dynamic, mut emitted) = (Vec::new(), Vec::new());
    for section in table.iter() {
        let loaded = section.sh_flags(endian).0 & elf::SHF_ALLOC.0 != 0;
        if section.sh_type(endian) == elf::SHT_RELR {
            let bytes = section.data(endian, data).map_err(damaged)?;
            dynamic.extend(relative_words(bytes, file, data));
            continue;
        }
        let Some((list, link)) = section.rela(endian, data).map_err(damaged)? else {
            continue;
        };
        // Places in sections that are not loaded, such as debug information, are no
        // addresses: they count from the section's start.
        let changed = table.section(section.info_link(endian)).ok();
        if !loaded && changed.is_some_and(|s| s.sh_flags(endian).0 & elf::SHF_ALLOC.0 == 0) {
            continue;
        }
        let symbols = table.symbol_table_by_index(endian, data, link).ok();
        for rela in list {
            let index = rela.symbol(endian, false);
            let value = index
                .and_then(|index| symbols.as_ref()?.symbol(index).ok())
                .map_or(0, |symbol| symbol.st_value(endian));
            let undefined = index.is_some() && value == 0;
            if undefined && loaded {
                // An import: nothing of this file.
                continue;
            }
            let addend = rela.r_addend(endian);
            let relocation = Relocation {
                place: rela.r_offset(endian),
                target: value.wrapping_add_signed(addend),
                kind: rela.r_type(endian, false).0,
            };
            if loaded {
                dynamic.push(relocation);
            } else {
                emitted.push(relocation);
            }
        }
    }
    dynamic.sort_by_key(|relocation| relocation.place);
    emitted.sort_by_key(|relocation| relocation.place);
    Ok((dynamic, emitted))
}

/// Places of packed relative relocations (`SHT_RELR`): an even word is a place, an
/// odd one a bit map of the 63 words behind the last place.
fn relative_words(table: &[u8], file: &ElfFile64<'_, Endianness>, data: &[u8]) -> Vec<Relocation> {
    let mut list = Vec::new();
    let mut next: u64 = 0;
    let mut push = |place: u64| {
        if let Some(target) = word_at(file, data, place) {
            list.push(Relocation {
                place,
                target,
                kind: elf::R_X86_64_RELATIVE.0,
            });
        }
    };
    for word in table.chunks_exact(8) {
        let Ok(word) = word.try_into().map(u64::from_le_bytes) else {
            continue;
        };
        if word & 1 == 0 {
            push(word);
            next = word.wrapping_add(8);
        } else {
            for bit in 0..63 {
                if word >> (bit + 1) & 1 == 1 {
                    push(next.wrapping_add(bit * 8));
                }
            }
            next = next.wrapping_add(63 * 8);
        }
    }
    list
}

fn word_at(file: &ElfFile64<'_, Endianness>, data: &[u8], place: u64) -> Option<u64> {
    use object::read::elf::ProgramHeader;
    let endian = file.endian();
    let segment = file.elf_program_headers().iter().find(|segment| {
        segment.p_type(endian) == elf::PT_LOAD
            && place
                .checked_sub(segment.p_vaddr(endian))
                .is_some_and(|offset| offset < segment.p_filesz(endian))
    })?;
    let offset = segment.p_offset(endian) + (place - segment.p_vaddr(endian));
    let offset = usize::try_from(offset).ok()?;
    let bytes = data.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    /// `readelf -r`: 3 relocations of `.text`, 4 of `.eh_frame` and 4 of `.data.rel.ro`;
    /// 40 more of debug information, at places such as 8 and 0x2a.
    #[test]
    fn relocations_of_debug_information_are_not_of_the_program() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../fixtures/guards/corpus/object/pie-relocs-debug"
        );
        let bytes = std::fs::read(file).unwrap();
        let image = super::super::read(&bytes).unwrap();
        assert_eq!(image.emitted.len(), 11, "{:x?}", image.emitted);
    }
}
