package compose

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/toolchain"
)

// HiddenTools returns the folders that a native sandbox does not show: of these, and of programs in these shell lines. A folder below
// the home is written as ~/PATH, because the home has another name for other people.
func (a *App) HiddenTools(c config.Config, lines []string, folders ...string) (out []string) {
	if c.Sandbox != "auto" && c.Sandbox != "native" && c.Sandbox != "landlock" {
		return nil
	}
	home := a.Host.Getenv("HOME")
	hide := func(dir string) {
		if a.Shown(c, dir) {
			return
		}
		if below, ok := strings.CutPrefix(dir, home+"/"); ok && home != "" {
			dir = "~/" + below
		}
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	for _, dir := range folders {
		hide(dir)
	}
	for _, program := range toolchain.Programs(lines) {
		found := a.LookPath(program)
		if found == "" {
			continue
		}
		var places []string
		if !a.Shown(c, found) {
			places = a.Places(found)
		}
		for _, dir := range places {
			// The shims of version managers need files beside their own folder.
			parent, name := filepath.Dir(dir), filepath.Base(dir)
			if name == "shims" || name == "bin" && strings.Contains(parent, "/versions/") {
				dir = parent
			}
			hide(dir)
		}
		real, _ := filepath.EvalSymlinks(found)
		for _, m := range toolchain.Managers(a.Host.Getenv) {
			if filepath.Base(real) == m.Program {
				hide(m.Folder)
			}
		}
	}
	return out
}

func (a *App) programPlaces(agent string, c config.Config) []string {
	program := a.About(agent).Program
	if program == "" && len(c.AgentCommand) > 0 {
		program = c.AgentCommand[0]
	}
	if program == "" {
		return nil
	}
	found := program
	if !strings.Contains(program, "/") {
		if found = a.LookPath(program); found == "" {
			return nil
		}
	}
	return a.Places(found)
}

// Places returns the folders that a program needs. A folder with the home, a checkout or ralph's state is replaced by the
// file alone.
func (a *App) Places(found string) []string {
	return toolchain.Places(found, a.Host.Getenv("HOME"), a.Host.Dir, a.Dir(), a.Host.Getenv("XDG_STATE_HOME"))
}

// LookPath returns the path of a program that agents may run, or "".
func (a *App) LookPath(program string) (found string) {
	if filepath.IsAbs(program) {
		found, _ = exec.LookPath(program)
	} else if !strings.Contains(program, "/") {
		found, _ = proc.Lookup(program, "", []string{"PATH=" + a.Host.Getenv("PATH")})
	}
	return found
}

// SandboxEnv returns the variables that the host's programs need inside a native sandbox: PATH, and the folders of version
// managers.
func (a *App) SandboxEnv(c config.Config) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(a.Host.Getenv("PATH")) {
		if a.Shown(c, dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	env := []string{"PATH=" + strings.Join(dirs, ":")}
	for _, m := range toolchain.Managers(a.Host.Getenv) {
		if a.Shown(c, m.Folder) {
			env = append(env, m.Variable+"="+m.Folder)
		}
	}
	return env
}

// Shown reports whether a native sandbox shows path.
func (a *App) Shown(c config.Config, path string) bool {
	shown := append([]string{"/usr", "/bin", "/sbin", "/opt"}, append(a.agentPlaces(c), c.SandboxShow...)...)
	return slices.ContainsFunc(shown, func(s string) bool { return path == s || strings.HasPrefix(path, s+"/") })
}
