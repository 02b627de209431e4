package hint

import (
	"cmp"
	"errors"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Sandbox returns the flags and commands that fix an error of a sandbox, or "".
func Sandbox(err error) string {
	fixable, ok := errors.AsType[*sandboxes.FixError](err)
	if !ok {
		return ""
	}
	var words []string
	for _, f := range fixable.Fixes {
		words = append(words, fixWords(f))
	}
	return strings.Join(words, ", or ")
}

func fixWords(f sandboxes.Fix) string {
	switch f.Setting {
	case sandboxes.SetProvider:
		return "choose another sandbox with --sandbox"
	case sandboxes.SetImage:
		return "build the image with: ralph image build --engine " + f.Value
	case sandboxes.SetUser:
		if f.Value == "" {
			return "remove --container-user"
		}
		return "name the user that runs commands: --container-user " + f.Value
	case sandboxes.SetCopy:
		if f.Value == "" {
			return "copy the files: --container-files copy"
		}
		return "copy the files for another user: --container-files copy --container-user " + f.Value
	case sandboxes.SetRuntime:
		return "name a runtime of the engine with --container-runtime, or remove that flag"
	case sandboxes.SetUnbounded:
		return "to accept this: --container-unbounded"
	case sandboxes.SetMemory:
		return "raise --memory-mb"
	case sandboxes.SetCPUs:
		return "raise --cpus"
	case sandboxes.SetFolder:
		return "move it out of /dev, /proc and /sys (the worktrees are in state-dir)"
	}
	return "change its " + string(f.Setting)
}

// SandboxLine says in one line which sandbox does not work, and why.
func SandboxLine(name string, err error) string { return name + ": " + SandboxWhy(name, err) }

// SandboxWhy says in one line why a sandbox does not work, with the fix.
func SandboxWhy(name string, err error) string {
	why := strings.TrimPrefix(strings.TrimSpace(err.Error()), "open sandbox "+name+": ")
	if fix := cmp.Or(Sandbox(err), exhausted(err)); fix != "" {
		why += "; " + fix
	}
	return strings.ReplaceAll(why, "\n", "; ")
}
