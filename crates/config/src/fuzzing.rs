//! The entry point for the fuzzer.

use crate::choice::PubsubDefault;
use crate::directive::LineJudge;
use crate::value::SettingRejection;

/// Accepts every line.
#[derive(Debug)]
pub struct Lenient;

impl LineJudge for Lenient {
    fn renamed_commands(&self, _: &[(String, String)]) -> Result<(), SettingRejection> {
        Ok(())
    }

    fn user(&self, _: &[&[u8]], _: PubsubDefault) -> Result<(), SettingRejection> {
        Ok(())
    }
}

/// Loads `data` as a configuration file, without reading other files. Checks that accepted
/// settings can be written and read back unchanged.
pub fn config_file(data: &[u8]) {
    if let Ok(config) = crate::file::parse_alone(data, &Lenient) {
        let text = crate::rewrite::merge(
            &[],
            &config,
            &crate::file::Included::default(),
            &[],
            crate::rewrite::Added::Changed,
        );
        let again = crate::file::parse_alone(&text, &Lenient);
        assert_eq!(
            again.map(|again| crate::rewrite::shown(&again)).ok(),
            Some(crate::rewrite::shown(&config))
        );
    }
}
