package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shiftVariable shifts the clock of a program that shiftedRalph built, by a number of seconds.
const shiftVariable = "RALPH_TEST_CLOCK"

// shiftedSource is a file added to package time in such a program.
const shiftedSource = `package time

import "syscall"

var shift = shifted()

func shifted() int64 {
	text, _ := syscall.Getenv("` + shiftVariable + `")
	n, err := atoi(text)
	if err != nil {
		return 0
	}
	return int64(n)
}
`

// shiftedRalph builds this test program, and so ralph, with a clock that can be wrong. Kernels have no wall clock per process, and
// Go programs do not call the libraries that fake one. All times in the program are shifted, but not those of git and of files.
func shiftedRalph(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	source, err := os.ReadFile(filepath.Join(root, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const now = "sec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), now) != 1 {
		t.Fatal("this Go reads the clock otherwise: look at time.Now, and change this test")
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, "time.go"):  file("time.go", strings.Replace(string(source), now, now+"\tsec += shift\n", 1)),
		filepath.Join(root, "shift.go"): file("shift.go", shiftedSource),
	}})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "ralph")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", file("overlay.json", string(overlay)), "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return program
}
