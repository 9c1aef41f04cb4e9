package private

import "golang.org/x/sys/unix"

// mayKeepNoRights reports whether a file is on a file system of which chmod often changes nothing.
func mayKeepNoRights(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && withoutRights(int64(s.Type)) //nolint:unconvert // it has 32 bits on some machines
}

// withoutRights knows, by their magic numbers, FAT, exFAT, NTFS, shares of Windows, and what else mostly stands for them.
func withoutRights(magic int64) bool {
	const ntfs3, ntfs = 0x7366746e, 0x5346544e
	switch uint32(magic) {
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, ntfs3, ntfs, unix.FUSE_SUPER_MAGIC,
		unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC:
		return true
	}
	return false
}
