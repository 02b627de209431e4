package compose

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/config"
)

// TestPlaces checks that a program below a linked folder needs the folders under both names.
func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, folder := range []string{"real/node_modules/.bin", "real/node_modules/agent"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "real/node_modules/agent/cli"), nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for name, to := range map[string]string{"real/node_modules/.bin/agent": "../agent/cli", "link": "real"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	got := (&App{}).Places(filepath.Join(dir, "link/node_modules/.bin/agent"))
	for _, want := range []string{"link/node_modules/.bin", "link/node_modules", "real/node_modules"} {
		if !slices.Contains(got, filepath.Join(dir, want)) {
			t.Errorf("no %s in %q", want, got)
		}
	}
}

// TestHiddenTools checks that a program of a version manager needs the manager's folder, and the variable with its path.
func TestHiddenTools(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	bin, toolchains := filepath.Join(home, ".cargo/bin"), filepath.Join(home, ".rustup")
	for _, folder := range []string{bin, toolchains} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "rustup"), nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := os.Symlink("rustup", filepath.Join(bin, "cargo")); err != nil {
		t.Fatal(err)
	}
	a := &App{Host: Host{Env: []string{"HOME=" + home, "PATH=" + bin}}}
	native := config.Config{Agent: "command", AgentCommand: []string{"/agent"}, Sandbox: "native"}
	for name, c := range map[string]struct {
		with         func(*config.Config)
		folders, env []string
	}{
		"neither":      {func(*config.Config) {}, []string{"~/.cargo/bin", "~/.rustup"}, []string{"PATH="}},
		"the programs": {func(c *config.Config) { c.SandboxShow = []string{bin} }, []string{"~/.rustup"}, []string{"PATH=" + bin}},
		"both":         {func(c *config.Config) { c.SandboxShow = []string{bin, toolchains} }, nil, []string{"PATH=" + bin, "RUSTUP_HOME=" + toolchains}},
		"no isolation": {func(c *config.Config) { c.Sandbox = "none" }, nil, []string{"PATH="}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := native
			c.with(&conf)
			folders, env := a.HiddenTools(conf, []string{"cargo test"}), a.SandboxEnv(conf)
			if !slices.Equal(folders, c.folders) || !slices.Equal(env, c.env) {
				t.Errorf("folders %q, variables %q", folders, env)
			}
		})
	}
}
