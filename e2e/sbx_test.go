package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A backlog is worked in a microVM of sbx, which is removed afterwards. The program of that package's tests simulates sbx.
func TestWorkInSbx(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the stand-in for sbx plays a microVM with Linux namespaces")
	}
	s, r := newScene(t, doIt), newRepository(t)
	bin, shim := s.path("bin"), s.path("shim")
	for _, dir := range []string{bin, shim} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", filepath.Join(bin, "sbx"), "../sandboxes/sbx")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	refused := `0 {"blocked_hosts":[{"host":"blocked.example:443","rule":"<default policy>","count_since":3}],"allowed_hosts":[]}`
	if err := os.Mkdir(filepath.Join(shim, "answers"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shim, "answers", "policy log"), []byte(refused), 0o644); err != nil {
		t.Fatal(err)
	}
	r.write(t, ".ralph/backlog/greet.md", "---\ntitle: Greet\nlabels: [no-human]\n---\nWrite a file.\n")
	r.commit(t, "a backlog")
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "SBX_TEST_SHIM=" + shim, "RALPH_SANDBOX=sbx"}

	// Nothing of the host's environment reaches the gate.
	p := s.start(t, r, env, "work", "--max-iterations", "2", "--gate", `test -z "$E2E_TEST_SCENE$RALPH_AGENT"`)
	if got := p.end(t); got != 0 {
		t.Fatalf("status %d\n%s", got, &p.out)
	}
	if n := r.commits(t, "ralph/greet"); n != 1 {
		t.Errorf("%d commits", n)
	}
	report, err := os.ReadFile(filepath.Join(string(r), ".ralph/backlog/greet.md"))
	for _, want := range []string{"sandbox: sbx", "network: blocked.example:443 was refused (sbx policy: default policy), 3 times"} {
		if err != nil || !strings.Contains(string(report), want) {
			t.Errorf("the report does not say %q: %v\n%s", want, err, report)
		}
	}
	if left, err := os.ReadDir(filepath.Join(shim, "boxes")); err != nil || len(left) > 0 {
		t.Errorf("microVMs are left: %v, %v", left, err)
	}
	s.clean(t, r)

	// The commands for sandboxes support it, too.
	p = s.start(t, r, env, "sandbox", "check")
	if got := p.end(t); got != 1 { // the simulation has files of the host open
		t.Errorf("status %d", got)
	}
	for _, want := range []string{"own policy", "Attacks from inside sbx:", "stopped  files/the worktree's .git file"} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("sandbox check does not say %q:\n%s", want, &p.out)
		}
	}
}
