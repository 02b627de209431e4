package sbx_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// shimVar makes this test binary simulate sbx; its value is the folder with the state.
const shimVar = "SBX_TEST_SHIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(shimVar); dir != "" {
		os.Exit(play(shim(dir), os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// withShim returns a provider that calls this test binary instead of sbx.
func withShim(t *testing.T, change func(*sbx.Config)) (*sbx.Provider, shim) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := shim(t.TempDir())
	t.Cleanup(func() { s.clean(t) })
	c := sbx.Config{
		// Without this, the race detector waits one second at the end of each process.
		Command: []string{"env", "GORACE=atexit_sleep_ms=0", self}, StateDir: t.TempDir(),
		HostEnv: append(os.Environ(), shimVar+"="+string(s), "SSH_AUTH_SOCK=/agent", "GITHUB_TOKEN=of the host"),
	}
	if change != nil {
		change(&c)
	}
	return sbx.New(c), s
}
