//! temporary
use super::{SourceError, rdb};
use crate::analysis::Analysis;
use crate::progress::Progress;
use std::path::Path;
pub fn read_path(path: &Path, analysis: &mut Analysis, progress: &mut Progress) -> Result<(), SourceError> {
    rdb::read_file(path, analysis, progress)
}
