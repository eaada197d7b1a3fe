//! `guard closure`: the packages of a program with their bytes.
use crate::app::AppError;
use crate::cli::ClosureArgs;
use std::io::Write;

pub(crate) fn run(_args: &ClosureArgs, _out: &mut dyn Write) -> Result<u8, AppError> {
    Err(AppError::Usage {
        message: "later".to_owned(),
    })
}
