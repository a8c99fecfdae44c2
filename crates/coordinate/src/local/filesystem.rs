//! The file systems that a local coordinator rejects.

use crate::error::CoordinatorError;
use std::path::Path;

/// Magic numbers of `statfs(2)` for file systems that other machines may change, or whose locks may
/// not reach all processes. FUSE is among them: sshfs and GlusterFS use it.
const REFUSED: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x564c, "NCP"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "CephFS"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x1983_0326, "BeeGFS"),
    (0x786f_4256, "a VirtualBox shared directory"),
    (0x6573_5546, "FUSE"),
];

/// Checks that a directory is on a file system of this machine.
pub(super) fn check(path: &Path) -> Result<(), CoordinatorError> {
    let found = rustix::fs::statfs(path)
        .map_err(|error| CoordinatorError::file("examine", path, error.into()))?;
    // The kernel's magic numbers have 32 bits; the field's type differs between machines.
    let magic = u64::from(found.f_type as u32);
    match refused_kind(magic) {
        Some(kind) => Err(CoordinatorError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

fn refused_kind(magic: u64) -> Option<&'static str> {
    REFUSED.iter().find(|(refused, _)| *refused == magic).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_rejected_and_local_ones_are_not() {
        // statfs(2): NFS_SUPER_MAGIC, CIFS_MAGIC_NUMBER, FUSE_SUPER_MAGIC.
        assert_eq!(refused_kind(0x6969), Some("NFS"));
        assert_eq!(refused_kind(0xff53_4d42), Some("CIFS"));
        assert_eq!(refused_kind(0x6573_5546), Some("FUSE"));
        // EXT4, XFS, BTRFS, TMPFS, OVERLAYFS.
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(refused_kind(local), None);
        }
    }

    #[test]
    fn the_error_names_the_file_system_and_the_solution() {
        let error = CoordinatorError::NetworkFileSystem { path: "/mnt/x".into(), kind: "NFS" };
        let text = error.to_string();
        assert!(text.contains("/mnt/x is on NFS") && text.contains("etcd://"), "{text}");
    }
}
