package private

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWithoutRights: who has the data folder on a stick or a share of Windows is told more than a chmod that changes nothing.
func TestWithoutRights(t *testing.T) {
	for magic, want := range map[int64]bool{
		unix.MSDOS_SUPER_MAGIC: true, unix.EXFAT_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, int64(int32(-0x00acb2be)): true, // cifs where it has 32 bits
		unix.EXT4_SUPER_MAGIC: false, unix.BTRFS_SUPER_MAGIC: false, unix.TMPFS_MAGIC: false, unix.NFS_SUPER_MAGIC: false,
	} {
		if got := withoutRights(magic); got != want {
			t.Errorf("%#x: %v", magic, got)
		}
	}
	for _, id := range []string{idOpenWrite, idOpenSecret} {
		plain := (&OpenError{Path: "/mnt/stick/data", id: id}).Error()
		says := (&OpenError{Path: "/mnt/stick/data", id: id, mount: true}).Error()
		if strings.Contains(plain, "umask") || !strings.Contains(says, "chmod") || strings.Count(says, "umask=077") != 2 || strings.Count(says, "--data") != 2 {
			t.Errorf("%s\n%s", plain, says)
		}
	}
	if Check(write(t, 0o600)) != nil || mayKeepNoRights("/proc/self") {
		t.Error("a file system with rights is taken for one without")
	}
}
