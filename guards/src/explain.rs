//! `guard explain`: where a crate or a function stands on each layer of each path.
use crate::app::AppError;
use crate::cli::ExplainArgs;
use std::io::Write;

pub(crate) fn run(_args: &ExplainArgs, _out: &mut dyn Write) -> Result<u8, AppError> {
    Err(AppError::Usage {
        message: "later".to_owned(),
    })
}
