package mirror

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// mark is made of what nobody can set back without the right to change the clock: the inode and its time of change. It
// is empty for a file that was changed after then.
func mark(info fs.FileInfo, then time.Time) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || time.Unix(st.Ctimespec.Unix()).After(then) {
		return ""
	}
	return fmt.Sprintf("%x.%x.%x.%x", st.Ino, st.Size, st.Ctimespec.Sec, st.Ctimespec.Nsec)
}
