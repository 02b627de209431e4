package escape

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

func exhaustAttacks() []Attack {
	return []Attack{
		{Name: "exhaust/processes", Brief: true, Make: func(s *Suite) {
			const most = 128
			r := s.open(func(spec *sandboxes.Spec) { spec.Limits.PIDs = most })
			// A shell that cannot fork exits. Its trap then counts the processes without forking.
			out, _, err := r.Sh(`trap 'set -- /proc/[0-9]*; echo count $#' EXIT; i=0
				while [ $i -lt "$1" ]; do sleep 1000 & i=$((i+1)); done`, strconv.Itoa(10*most))
			_, count, _ := strings.Cut(out, "count ")
			count, _, _ = strings.Cut(count, "\n")
			if n, convErr := strconv.Atoi(count); err != nil || convErr != nil || n > most+2 {
				s.Errorf("%v, %v, %s", err, convErr, out)
			}
			r.Works()
		}},
		{Name: "exhaust/processes that nobody waits for", Make: func(s *Suite) {
			r := s.open(func(spec *sandboxes.Spec) { spec.Limits.PIDs = 128 })
			// The classic fork bomb. It ends when the command is killed.
			started := &firstWrite{done: make(chan struct{})}
			if s.polledLimits {
				_, _ = started.Write(nil) // otherwise the bomb would exhaust the whole machine
			}
			_, err := r.Exec(r.Bounded(), sandboxes.Command{
				Argv:   []string{"sh", "-c", "trap '' TERM; echo started; bomb() { bomb | bomb & }; bomb; sleep 100"},
				Stdout: started, Interrupt: started.done, Grace: bombTime,
			})
			if err != nil {
				s.Errorf("the bomb: %v", err)
			}
			r.Works()
		}},
		{Name: "exhaust/memory", Brief: true, Make: func(s *Suite) {
			r := s.open(func(spec *sandboxes.Spec) { spec.Limits.Memory = 256 << 20 })
			exit, err := r.Exec(r.Bounded(), sandboxes.Command{Argv: r.attackArgv("memory", strconv.Itoa(1<<30))})
			if err != nil || exit.Signal != "SIGKILL" {
				s.Errorf("ended with %+v, %v, want to be killed", exit, err)
			}
			r.Works()
		}},
		{Name: "exhaust/watchers of files", Make: func(s *Suite) {
			r := s.open(nil)
			r.attack("watchers")
			r.Works()
		}},
		{Name: "exhaust/scratch space", Brief: true, Make: func(s *Suite) {
			const most = 16 << 20
			r := s.open(func(spec *sandboxes.Spec) { spec.Limits.Disk = most })
			out, _, err := r.Sh(`for d in /tmp "$HOME" /dev/shm /var/tmp; do head -c 100000000 /dev/zero >$d/fill; done 2>/dev/null
			cat /tmp/fill "$HOME/fill" /dev/shm/fill /var/tmp/fill 2>/dev/null | wc -c
			rm -f /tmp/fill "$HOME/fill" /dev/shm/fill /var/tmp/fill`)
			if err != nil {
				s.Fatal(err)
			}
			if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n > most {
				s.Errorf("it holds %s bytes, %v", out, err)
			}
			r.Works()
			r.checkUnchanged()
		}},
		{Name: "exhaust/half a gigabyte of output", Make: func(s *Suite) {
			const size = 500_000_000
			r := s.open(nil)
			var count counter
			exit, err := r.Exec(r.Bounded(), sandboxes.Command{
				Argv: []string{"head", "-c", strconv.Itoa(size), "/dev/zero"}, Stdout: &count,
			})
			if err != nil || !exit.OK() || count.Load() != size {
				s.Errorf("%+v, %v, %d bytes", exit, err, count.Load())
			}
			r.Works()
		}},
	}
}

// bombTime is how long a fork bomb may run.
const bombTime = 200 * time.Millisecond

// firstWrite closes done at its first Write.
type firstWrite struct {
	once sync.Once
	done chan struct{}
}

func (f *firstWrite) Write(p []byte) (int, error) {
	f.once.Do(func() { close(f.done) })
	return len(p), nil
}

// counter counts bytes and discards them.
type counter struct{ atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// attackMemory uses the given number of bytes of memory.
func attackMemory(a *attempt, args []string) {
	size, _ := strconv.Atoi(args[0])
	var kept [][]byte
	for used := 0; used < size; used += 16 << 20 {
		block := make([]byte, 16<<20)
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = byte(used)
		}
		kept = append(kept, block)
	}
	a.report("use memory:", len(kept)*16, "MiB")
}

// attackWatchers uses up the inotify resources of the host's user. Half of them must remain.
func attackWatchers(a *attempt, _ []string) {
	for kind, use := range map[string]func(most int) int{
		"instances": func(most int) (n int) {
			for ; n < most; n++ {
				if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
					return n
				}
			}
			return n
		},
		"watches": func(int) int { // creating as many files would exceed the scratch space
			n, err := readNumber("/proc/sys/user/max_inotify_watches")
			if err != nil {
				a.report("its own limit:", err)
			}
			return n
		},
	} {
		most, err := readNumber("/proc/sys/fs/inotify/max_user_" + kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the sandbox has its own kernel, which uses none of the host's
		}
		if err != nil {
			a.report("the host's limit:", err)
		}
		if n := use(most); n < 1 || n > most/2 {
			a.report("use", n, "inotify", kind, "of", most)
		}
	}
}

func readNumber(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
