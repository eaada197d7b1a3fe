//! A linked program as the layers see it: sections, symbols, pointers, names.
//!
//! ELF of any kind is recognised; only x86-64 executables are judged. Every
//! allocation is bounded by the size of the file.

mod image;
mod names;
mod pointers;
mod text_lists;
mod twins;

pub(crate) use image::{
    FILE_BYTES_MAX, Image, ImageError, Link, Section, Symbol, SymbolKind, read,
};
pub(crate) use names::{CodeName, code_name, display_name, owning_paths, paths_in, plain_path};
pub(crate) use pointers::{Pointer, pointers};
pub(crate) use text_lists::TextLists;
pub(crate) use twins::{Loaded, Unlike, check_twins};
