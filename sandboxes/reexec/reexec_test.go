package reexec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asProgram is the variable that makes this test program end instead of testing.
const asProgram = "REEXEC_TEST_PROGRAM"

func init() { //nolint:gochecknoinits // a registration
	Register("echo", func(p Process) int {
		_, _ = io.WriteString(p.Stdout, strings.Join(p.Args, " "))
		return 3
	})
}

// TestMain is the rest of a program: a process with a role never gets here.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		_, _ = os.Stdout.WriteString("main")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestRegisterServesRoles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		args       []string
		status     int
	}{
		{"a role", "a b", Args("echo", "a", "b"), 3},
		{"no role", "main", nil, 0},
		{"an unknown role", "main", Args("nothing"), 0},
		{"a word without a role", "main", []string{roleArg}, 0},
		{"the program's own arguments", "main", []string{"run", roleArg, "echo"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], tt.args...)
			cmd.Env = append(os.Environ(), asProgram+"=1")
			var out bytes.Buffer
			cmd.Stdout = &out
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if out.String() != tt.want || cmd.ProcessState.ExitCode() != tt.status {
				t.Errorf("%q, status %d; want %q, %d", &out, cmd.ProcessState.ExitCode(), tt.want, tt.status)
			}
		})
	}
}

func TestRegisterRefusesADuplicate(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Register("echo", nil)
}
