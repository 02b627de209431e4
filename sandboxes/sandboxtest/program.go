package sandboxtest

import (
	"bytes"
	"os"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
)

// CopyProgram copies this program to where others may run it. Another process writes it: while this one has it open for
// writing, so has whatever it forks, and then nobody can start it.
func CopyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := proc.Run(t.Context(), proc.Spec{Argv: []string{"cp", from, to}, Env: os.Environ(), Stdout: &out, Stderr: &out})
	if err != nil || exit.Code != 0 {
		t.Fatalf("cp: %+v, %v\n%s", exit, err, &out)
	}
	if err := os.Chmod(to, 0o755); err != nil {
		t.Fatal(err)
	}
}
