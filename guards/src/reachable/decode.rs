//! References of code, by decoding it.

use super::functions::Functions;
use crate::binary::{Image, Link};
use crate::threads;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

/// How code refers to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    /// Goes there: call, jump, or running off the end.
    Goes,
    /// Takes the address; what lies there may be used whole.
    Takes,
    /// Reads this many bytes there and no more.
    Reads(u8),
}

/// One reference of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) target: u64,
    pub(crate) how: Use,
}

/// References of all functions.
#[derive(Debug, Clone, Default)]
pub(crate) struct References {
    /// By function, sorted, without repeats.
    pub(crate) of: Vec<Box<[Reference]>>,
    /// Calls and jumps through registers and memory, by function.
    pub(crate) indirect: Vec<u32>,
}

/// Functions that one thread decodes at least; less is not worth a thread.
const CHUNK_MIN: usize = 4096;

/// Decodes every function, on as many threads as the machine has.
pub(crate) fn decode(image: &Image<'_>, functions: &Functions) -> References {
    let count = functions.list.len();
    let parts = threads::by_chunks(&functions.list, CHUNK_MIN, |_, part| {
        let mut references = References::default();
        // One list for all: what is kept of it has its exact length.
        let mut list = Vec::new();
        for function in part {
            list.clear();
            let indirect = decode_function(image, function.start, function.end, &mut list);
            references.of.push(list.as_slice().into());
            references.indirect.push(indirect);
        }
        references
    });
    let mut all = References {
        of: Vec::with_capacity(count),
        indirect: Vec::with_capacity(count),
    };
    for part in parts {
        all.of.extend(part.of);
        all.indirect.extend(part.indirect);
    }
    all
}

/// Writes the references of one function to `list`, which is empty; counts its indirect
/// calls and jumps.
fn decode_function(image: &Image<'_>, start: u64, end: u64, list: &mut Vec<Reference>) -> u32 {
    let length = usize::try_from(end - start).unwrap_or(0);
    let Some(bytes) = image.bytes_at(start, length) else {
        return 0;
    };
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut indirect = 0;
    let mut runs_off = false;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        runs_off = matches!(
            instruction.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch
        );
        match instruction.flow_control() {
            FlowControl::Call
            | FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch => {
                let target = instruction.near_branch_target();
                if !(start..end).contains(&target) {
                    push(list, target, Use::Goes);
                }
            }
            FlowControl::IndirectCall | FlowControl::IndirectBranch => indirect += 1,
            _ => {}
        }
        memory_references(image, &instruction, list);
        if image.link == Link::Fixed {
            immediate_references(image, &instruction, list);
        }
    }
    // A function cut in two (cold parts, several entries) goes on in the next.
    if runs_off {
        push(list, end, Use::Goes);
    }
    list.sort_unstable();
    list.dedup();
    indirect
}

fn push(list: &mut Vec<Reference>, target: u64, how: Use) {
    list.push(Reference { target, how });
}

fn memory_references(image: &Image<'_>, instruction: &Instruction, list: &mut Vec<Reference>) {
    let size = u8::try_from(instruction.memory_size().size()).unwrap_or(u8::MAX);
    let is_address = size == 0 || is_lea(instruction);
    if instruction.is_ip_rel_memory_operand() {
        let how = if is_address {
            Use::Takes
        } else {
            Use::Reads(size)
        };
        push(list, instruction.ip_rel_memory_address(), how);
        return;
    }
    let has_memory =
        (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    if !has_memory || image.link == Link::Pie {
        return;
    }
    // At fixed addresses a displacement can be a table that is indexed.
    let address = instruction.memory_displacement64();
    if image.section_at(address).is_some() {
        let plain = instruction.memory_base() == Register::None
            && instruction.memory_index() == Register::None;
        let how = if plain && !is_address {
            Use::Reads(size)
        } else {
            Use::Takes
        };
        push(list, address, how);
    }
}

fn is_lea(instruction: &Instruction) -> bool {
    matches!(
        instruction.code(),
        Code::Lea_r64_m | Code::Lea_r32_m | Code::Lea_r16_m
    )
}

fn immediate_references(image: &Image<'_>, instruction: &Instruction, list: &mut Vec<Reference>) {
    for operand in 0..instruction.op_count() {
        let value = match instruction.op_kind(operand) {
            OpKind::Immediate32 => u64::from(instruction.immediate32()),
            OpKind::Immediate32to64 => instruction.immediate(operand),
            OpKind::Immediate64 => instruction.immediate64(),
            _ => continue,
        };
        if image.section_at(value).is_some() {
            push(list, value, Use::Takes);
        }
    }
}
