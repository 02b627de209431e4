package escape

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

func helperAttacks() []Attack {
	return []Attack{
		{Name: "helper/signals to the first process", Make: func(s *Suite) {
			r := s.open(nil)
			other := s.open(nil)
			r.attack("helper")
			if out, exit, err := r.Sh("cat work"); err == nil && (!exit.OK() || out != "work\n") {
				s.Errorf("the next command: %+v, %s", exit, out) // an error is allowed: the sandbox may have ended
			}
			other.Works()
			r.checkUnchanged()
		}},
		{Name: "helper/a daemon that ignores every signal", Brief: true, Make: func(s *Suite) {
			r := s.open(nil)
			pipe := filepath.Join(cmp.Or(s.shared, r.spec.Worktree), "alive-"+filepath.Base(r.spec.Run))
			if err := unix.Mkfifo(pipe, 0o666); err != nil {
				s.Fatal(err)
			}
			if err := os.Chmod(pipe, 0o666); err != nil {
				s.Fatal(err)
			}
			read, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				s.Fatal(err)
			}
			defer func() { _ = read.Close() }()
			_ = read.SetReadDeadline(time.Now().Add(limit))
			if out, exit, err := r.Sh(`trap '' HUP INT QUIT TERM USR1 USR2 PIPE ALRM
			env -i setsid sh -c 'exec 9>"$1"; echo up >&9; (setsid sh -c "while :; do sleep 100; done" &) ; while :; do sleep 100; done' sh "$1" \
				</dev/null >/dev/null 2>&1 &
			exec 8<"$1"; read -r up <&8`, pipe); err != nil || !exit.OK() {
				s.Errorf("%+v, %v, %s", exit, err, out)
			}
			// End of file means that no process of it is left.
			buf := make([]byte, 16)
			for {
				if _, err := read.Read(buf); err != nil {
					if os.IsTimeout(err) {
						s.Error("the daemon lives on")
					}
					break
				}
			}
			r.Works()
		}},
		{Name: "helper/commands that hold its attention", Make: func(s *Suite) {
			r := s.open(nil)
			done := make(chan error, 1)
			go func() {
				_, err := r.Exec(r.Bounded(), sandboxes.Command{Argv: r.attackArgv("helper", "again")})
				done <- err
			}()
			for i := range 5 {
				if out, exit, err := r.Sh("echo " + strconv.Itoa(i)); err != nil || !exit.OK() {
					s.Errorf("command %d: %+v, %v, %s", i, exit, err, out)
				}
			}
			if err := <-done; err != nil {
				s.Logf("the attacker: %v", err) // its sandbox may have ended
			}
			r.Works()
		}},
	}
}

// attackHelper sends every signal to the first process, many times.
func attackHelper(a *attempt, _ []string) {
	for range 200 {
		for sig := 1; sig <= 64; sig++ {
			_ = unix.Kill(1, unix.Signal(sig))
		}
	}
	if p, err := os.FindProcess(1); err == nil {
		_ = p.Kill()
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 1, 19)
	a.expectError("limit the first process", unix.Prlimit(1, unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil))
	a.writable("/proc/1/oom_score_adj")
}
