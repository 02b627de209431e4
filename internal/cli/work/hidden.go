package work

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/sandboxes"
)

// HiddenFiles returns those paths that are files of this host and are not visible in the sandbox.
func HiddenFiles(a *compose.App, p *compose.Parts, provider sandboxes.Provider, paths []string) (hidden []string) {
	mounts, err := a.Mounts(p)
	if err != nil || !compose.ShowsHost(provider) {
		return nil
	}
	own := func(path string) bool { // of the system: the sandbox has the same, or its own
		return slices.Contains([]string{"dev", "etc", "lib", "lib64", "proc", "sys"}, strings.Split(path, "/")[1])
	}
	mounted := func(path string) bool {
		return slices.ContainsFunc(mounts, func(m sandboxes.Mount) bool {
			return path == m.Inside || strings.HasPrefix(path, m.Inside+"/")
		})
	}
	for _, path := range paths {
		path = filepath.Clean(path)
		real, err := filepath.EvalSymlinks(path)
		if provider.Name() == "landlock" && a.Shown(p.Config, real) { // landlock follows links wherever they lead
			continue
		}
		info, failed := os.Stat(path)
		isFile := errors.Join(err, failed) == nil && info.Mode().IsRegular()
		if !isFile || !filepath.IsAbs(path) || own(path) || a.Shown(p.Config, path) {
			continue
		}
		if link, err := os.Readlink(path); err == nil && link != "" { // show the folder of a link
			path = a.Places(path)[0]
		}
		if !mounted(path) && !slices.Contains(hidden, path) {
			hidden = append(hidden, path)
		}
	}
	return hidden
}

// longestLine is the maximum length of a script's first line, in bytes; systems read less.
const longestLine = 512

// Interpreter returns the program in a script's first line, or "" if the file is not a script or is unreadable.
func Interpreter(script string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, longestLine)).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	return words[0]
}

// needed returns the files that a command line needs to start: the interpreter of its program, and the script that an
// interpreter on the command line runs.
func needed(program string, args []string) []string {
	files := []string{Interpreter(program)}
	interpreters := []string{"bash", "dash", "ksh", "node", "perl", "python", "python3", "ruby", "sh", "zsh"}
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if i >= 0 && slices.Contains(interpreters, filepath.Base(program)) {
		files = append(files, args[i])
	}
	return files
}

// hiddenProgram returns an error if the sandbox cannot start the agent's command, because it does not show its files.
func hiddenProgram(a *compose.App, p *compose.Parts, provider sandboxes.Provider, agent, program string, args []string) error {
	hidden := HiddenFiles(a, p, provider, needed(program, args))
	if len(hidden) == 0 {
		return nil
	}
	return &exit.Error{
		Status: exit.Parked,
		Err:    fmt.Errorf("agent %s is unavailable: sandbox %s does not show %s", agent, provider.Name(), strings.Join(hidden, ", ")),
		Hint:   "sandbox-show: " + keys.YAML(hidden) + " in your configuration",
	}
}
