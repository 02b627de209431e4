package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// FreeTasks returns how many more processes and threads the limit of the user's processes (ulimit -u) allows this process. limited is
// false if there is no limit, as for root.
func FreeTasks() (n int, limited bool) {
	most, limited := MaxTasks()
	if !limited {
		return 0, false
	}
	return max(0, most-Tasks(os.Getuid())), true
}

// MaxTasks returns the limit of the processes and threads of this process's user. limited is false if there is none, as for root.
func MaxTasks() (n int, limited bool) {
	var l unix.Rlimit
	if os.Getuid() == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &l) != nil || l.Cur > 1<<31-1 {
		return 0, false
	}
	return int(l.Cur), true
}

// Tasks returns the number of processes and threads of a user.
func Tasks(uid int) (n int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil || int(st.Uid) != uid {
			continue
		}
		text, _ := os.ReadFile(filepath.Join(dir, "status")) // it may have ended
		for line := range bytes.Lines(text) {
			if count, ok := bytes.CutPrefix(line, []byte("Threads:")); ok {
				threads, _ := strconv.Atoi(string(bytes.TrimSpace(count)))
				n += threads
			}
		}
	}
	return n
}
