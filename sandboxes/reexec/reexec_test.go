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

// asProgram is the variable that makes this test program call Main first, as other programs do.
const asProgram = "REEXEC_TEST_PROGRAM"

func init() { //nolint:gochecknoinits // a registration
	Register("echo", func(p Process) int {
		_, _ = io.WriteString(p.Stdout, strings.Join(p.Args, " "))
		return 3
	})
}

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		Main()
		_, _ = os.Stdout.WriteString("main")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestMainServesRoles(t *testing.T) {
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

func TestCheckWantsMain(t *testing.T) {
	mainCalled.Store(false)
	if err := Check(); !errors.Is(err, ErrNoMain) || strings.Contains(err.Error(), "\n") {
		t.Errorf("before Main: %v", err)
	}
	Main()
	if err := Check(); err != nil {
		t.Errorf("after Main: %v", err)
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
