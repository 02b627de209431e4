package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// fileHelpers returns the programs that the test binary can run as, to test limits of open files.
func fileHelpers() map[string]func() {
	return map[string]func(){
		"exhaust-files": func() {
			var all []*os.File
			for {
				f, err := os.Open(os.DevNull)
				if err != nil {
					break
				}
				all = append(all, f)
			}
			failed := 0
			for _, f := range all {
				s, _, _ := sh("exit 3")
				s.Stdin, s.Mark = strings.NewReader("input"), "exhausted"
				if exit, err := Run(context.Background(), s); err != nil {
					failed++
				} else if exit.Code != 3 {
					fmt.Println(exit)
				}
				_ = f.Close()
			}
			fmt.Println("failed", failed > 0 && failed < len(all))
		},
		"files-of-a-child": func() {
			n, err := OpenFiles()
			s, out, _ := sh("ulimit -Sn")
			_, ran := Run(context.Background(), s)
			fmt.Println(n > 200, strings.TrimSpace(out.String()), err, ran)
		},
	}
}

// Without free descriptors a process cannot be started, and nothing else fails. This process has the hard limit of open
// files; its children have the user's soft limit.
func TestOpenFiles(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ limits, want string }{
		"exhaust-files":    {"ulimit -n 40", "failed true"},
		"files-of-a-child": {"ulimit -Sn 200; ulimit -Hn 300", "true 200 <nil> <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "sh", "-c", c.limits+`; exec "$0"`, self)
			cmd.Env = append(path(), helper+"="+name)
			out, err := cmd.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
				t.Errorf("%v\n%s\nwant %s", err, got, c.want)
			}
		})
	}
}
