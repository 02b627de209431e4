package importer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An error names the program that an image lacks: its commits are not mistaken for uncommitted changes.
func TestScriptWithoutProgram(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, name := range []string{"cat", "chmod", "cp", "cut", "find", "git", "grep", "head", "mkdir", "mktemp", "mv", "rm", "sed", "tail", "tr", "wc", "xargs"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	objects, tip := given(t)
	argv := Script{Scope: All, GitDir: filepath.Dir(objects), Branch: "main", Last: tip, Blob: 1 << 20, Files: 10, Depth: 10}.Argv()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + bin}
	out, err := cmd.CombinedOutput()
	if err == nil || strings.TrimSpace(string(out)) != "the sandbox lacks the program ln" {
		t.Errorf("%v: %s", err, out)
	}
}
