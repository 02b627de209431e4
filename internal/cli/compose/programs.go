package compose

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/toolchain"
)

// HiddenTools are what programs that shell lines begin with need in a native sandbox: folders that it does not show, and variables
// with which version managers find what they have installed.
func (a *App) HiddenTools(c config.Config, lines []string) (folders, env []string) {
	if c.Sandbox != "auto" && c.Sandbox != "native" && c.Sandbox != "landlock" {
		return nil, nil
	}
	hide := func(dir string) {
		if !a.Shown(c, dir) && !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	for _, program := range toolchain.Programs(lines) {
		found := a.LookPath(program)
		if found == "" {
			continue
		}
		if !a.Shown(c, found) {
			for _, dir := range a.Places(found) {
				// The programs of version managers lead to what stands beside their folder.
				if parent := filepath.Dir(dir); filepath.Base(dir) == "shims" || filepath.Base(dir) == "bin" && strings.Contains(parent, "/versions/") {
					dir = parent
				}
				hide(dir)
			}
		}
		real, _ := filepath.EvalSymlinks(found)
		for _, m := range toolchain.Managers() {
			dir := cmp.Or(a.Host.Getenv(m.Variable), filepath.Join(a.Host.Getenv("HOME"), m.Folder))
			if _, err := os.Stat(dir); err != nil || filepath.Base(real) != m.Program {
				continue
			}
			hide(dir)
			has := func(e string) bool { return e == m.Variable || strings.HasPrefix(e, m.Variable+"=") }
			if !slices.ContainsFunc(slices.Concat(c.AgentEnv, env), has) {
				env = append(env, m.Variable+"="+dir)
			}
		}
	}
	return folders, env
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

// Places are the folders that a program needs: where it was found in PATH, and what that leads to.
func (a *App) Places(found string) (places []string) {
	home := a.Host.Getenv("HOME")
	// A folder that holds your work or your home is not shown for the sake of one program in it: the program alone is.
	show := func(dir, file string) string {
		for _, kept := range []string{home, a.Host.Dir, a.Dir(), a.Host.Getenv("XDG_STATE_HOME")} {
			if kept != "" && (kept == dir || strings.HasPrefix(kept+"/", strings.TrimSuffix(dir, "/")+"/")) {
				return file
			}
		}
		return dir
	}
	add := func(at string) {
		root := show(filepath.Dir(at), at)
		if i := strings.LastIndex(at, "/node_modules/"); i >= 0 && at != found { // a package of npm needs its neighbours too
			root = at[:i+len("/node_modules")]
		}
		if !slices.Contains(places, root) {
			places = append(places, root)
		}
	}
	add(found)
	// Each link leads on from where it stands, and that may itself be below a link.
	for at, links := found, 0; links < 10; links++ {
		next, err := os.Readlink(at)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(at), next)
		}
		at = next
		add(at)
	}
	if real, err := filepath.EvalSymlinks(found); err == nil {
		add(real)
	}
	return places
}

// LookPath is where a program is that agents may run; empty: nowhere.
func (a *App) LookPath(program string) (found string) {
	if filepath.IsAbs(program) {
		found, _ = exec.LookPath(program)
	} else if !strings.Contains(program, "/") {
		found, _ = proc.Lookup(program, "", []string{"PATH=" + a.Host.Getenv("PATH")})
	}
	return found
}

// SandboxPath is the PATH inside a native sandbox: the host's, as far as it is shown.
func (a *App) SandboxPath(c config.Config) string {
	var dirs []string
	for _, dir := range filepath.SplitList(a.Host.Getenv("PATH")) {
		if a.Shown(c, dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// Shown reports whether a native sandbox shows the path.
func (a *App) Shown(c config.Config, path string) bool {
	shown := append([]string{"/usr", "/bin", "/sbin", "/opt"}, append(a.agentPlaces(c), c.SandboxShow...)...)
	return slices.ContainsFunc(shown, func(s string) bool { return path == s || strings.HasPrefix(path, s+"/") })
}
