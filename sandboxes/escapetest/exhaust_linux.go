package escapetest

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

func exhaustCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"exhaust/processes": func(s *suite) {
			const most = 128
			r := s.open(func(spec *sandboxes.Spec) { spec.Limits.PIDs = most })
			// Where a shell cannot start another process it ends; how many there are it then counts without one.
			out, _, err := r.sh(`trap 'set -- /proc/[0-9]*; echo count $#' EXIT; i=0
				while [ $i -lt "$1" ]; do sleep 1000 & i=$((i+1)); done`, strconv.Itoa(10*most))
			_, count, _ := strings.Cut(out, "count ")
			count, _, _ = strings.Cut(count, "\n")
			if n, convErr := strconv.Atoi(count); err != nil || convErr != nil || n > most+2 {
				s.Errorf("%v, %v, %s", err, convErr, out)
			}
			r.works()
		},
		"exhaust/processes that nobody waits for": func(s *suite) {
			r := s.open(func(spec *sandboxes.Spec) { spec.Limits.PIDs = 128 })
			// The bomb of old; its end is that the command is killed.
			lit := &spark{lit: make(chan struct{})}
			if s.looking {
				_, _ = lit.Write(nil) // a bomb that goes off would be the whole machine's
			}
			_, err := r.Exec(r.bounded(), sandboxes.Command{
				Argv:   []string{"sh", "-c", "trap '' TERM; echo lit; bomb() { bomb | bomb & }; bomb; sleep 100"},
				Stdout: lit, Interrupt: lit.lit, Grace: bombTime,
			})
			if err != nil {
				s.Errorf("the bomb: %v", err)
			}
			r.works()
		},
		"exhaust/memory": func(s *suite) {
			r := s.open(func(spec *sandboxes.Spec) { spec.Limits.Memory = 256 << 20 })
			exit, err := r.Exec(r.bounded(), sandboxes.Command{Argv: []string{r.attacker, attackMark, "memory", strconv.Itoa(1 << 30)}})
			if err != nil || exit.Signal != "SIGKILL" {
				s.Errorf("ended with %+v, %v, want to be killed", exit, err)
			}
			r.works()
		},
		"exhaust/watchers of files": func(s *suite) {
			r := s.open(nil)
			r.attack("watchers")
			r.works()
		},
		"exhaust/scratch space": func(s *suite) {
			const most = 16 << 20
			r := s.open(func(spec *sandboxes.Spec) { spec.Limits.Disk = most })
			out, _, err := r.sh(`for d in /tmp "$HOME" /dev/shm /var/tmp; do head -c 100000000 /dev/zero >$d/fill; done 2>/dev/null
			cat /tmp/fill "$HOME/fill" /dev/shm/fill /var/tmp/fill 2>/dev/null | wc -c`)
			if err != nil {
				s.Fatal(err)
			}
			if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n > most {
				s.Errorf("it holds %s bytes, %v", out, err)
			}
			r.works()
			r.unchanged()
		},
		"exhaust/half a gigabyte of output": func(s *suite) {
			const size = 500_000_000
			r := s.open(nil)
			var count counter
			exit, err := r.Exec(r.bounded(), sandboxes.Command{
				Argv: []string{"head", "-c", strconv.Itoa(size), "/dev/zero"}, Stdout: &count,
			})
			if err != nil || !exit.OK() || count.Load() != size {
				s.Errorf("%+v, %v, %d bytes", exit, err, count.Load())
			}
			r.works()
		},
	}
}

// bombTime is how long a bomb may go off.
const bombTime = 200 * time.Millisecond

// spark closes lit with the first that is written.
type spark struct {
	once sync.Once
	lit  chan struct{}
}

func (s *spark) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.lit) })
	return len(p), nil
}

// counter counts bytes and keeps none.
type counter struct{ atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// attackMemory uses that much memory.
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

// attackWatchers takes from the host's user what programs watch files with. Half of it must be left.
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
		"watches": func(int) int { // as many files as that would fill the scratch space
			n, err := readNumber("/proc/sys/user/max_inotify_watches")
			if err != nil {
				a.report("its own limit:", err)
			}
			return n
		},
	} {
		most, err := readNumber("/proc/sys/fs/inotify/max_user_" + kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel of the sandbox's own, which takes nothing from the host's
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
