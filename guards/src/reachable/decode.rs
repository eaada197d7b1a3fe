//! References of code, by decoding it.

use super::functions::Functions;
use crate::binary::{Image, Link};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use std::num::NonZero;

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
    pub(crate) of: Vec<Vec<Reference>>,
    /// Calls and jumps through registers and memory, by function.
    pub(crate) indirect: Vec<u32>,
}

/// Functions that one thread decodes at least; less is not worth a thread.
const CHUNK_MIN: usize = 4096;

/// Decodes every function, on as many threads as the machine has.
pub(crate) fn decode(image: &Image<'_>, functions: &Functions) -> References {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let chunk = functions.list.len().div_ceil(threads).max(CHUNK_MIN);
    let parts: Vec<References> = std::thread::scope(|scope| {
        let workers: Vec<_> = functions
            .list
            .chunks(chunk)
            .map(|part| {
                scope.spawn(move || {
                    let mut references = References::default();
                    for function in part {
                        let (list, indirect) = decode_function(image, function.start, function.end);
                        references.of.push(list);
                        references.indirect.push(indirect);
                    }
                    references
                })
            })
            .collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .collect()
    });
    parts
        .into_iter()
        .fold(References::default(), |mut all, part| {
            all.of.extend(part.of);
            all.indirect.extend(part.indirect);
            all
        })
}

fn decode_function(image: &Image<'_>, start: u64, end: u64) -> (Vec<Reference>, u32) {
    let length = usize::try_from(end - start).unwrap_or(0);
    let Some(bytes) = image.bytes_at(start, length) else {
        return (Vec::new(), 0);
    };
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut list = Vec::new();
    let mut indirect = 0;
    let mut runs_off = false;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        runs_off = instruction.flow_control() == FlowControl::Next;
        match instruction.flow_control() {
            FlowControl::Call
            | FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch => {
                let target = instruction.near_branch_target();
                if !(start..end).contains(&target) {
                    push(&mut list, target, Use::Goes);
                }
            }
            FlowControl::IndirectCall | FlowControl::IndirectBranch => indirect += 1,
            _ => {}
        }
        memory_references(image, &instruction, &mut list);
        if image.link == Link::Fixed {
            immediate_references(image, &instruction, &mut list);
        }
    }
    // A function cut in two (cold parts, several entries) goes on in the next.
    if runs_off {
        push(&mut list, end, Use::Goes);
    }
    list.sort_unstable();
    list.dedup();
    (list, indirect)
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
