package git

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/worktree/reuse"
)

// known keeps what the configuration of repositories says for as long as none of its files changes, and the files of the last commits.
// A process of git costs more than all of these looks at files.
type known struct {
	mu    sync.Mutex
	kept  map[string]*kept  // by repository and environment
	lists map[string]string // files of commits, see Files
}

// kept is one configuration as it was read.
type kept struct {
	settings []Located
	files    map[string]os.FileInfo // that can have a part in it; nil: there is none
}

const (
	mostKept    = 16                     // configurations
	mostLists   = 4                      // of files
	longestList = 1 << 20                // bytes of each
	settled     = 100 * time.Millisecond // the age from which a file's time tells each change of it
)

// Remembering has the runner, and all made from it, read the configuration anew only when one of its files has changed, and keep
// a process that moves refs for a moment.
func (g Runner) Remembering() Runner {
	g.known, g.movers = &known{kept: map[string]*kept{}}, &reuse.Processes{}
	return g
}

// SameMemory has the runner share what another remembers.
func (g Runner) SameMemory(other Runner) Runner {
	g.known, g.movers = other.known, other.movers
	return g
}

// configKey names the configuration that the runner's commands read. The worktrees of a repository share it: one that has
// settings of its own is not kept.
func (g Runner) configKey() string {
	ignored := strings.Fields("GIT_DIR= GIT_WORK_TREE= GIT_COMMON_DIR= GIT_CONFIG_COUNT= GIT_CONFIG_KEY_ GIT_CONFIG_VALUE_")
	key := []string{g.common}
	for _, kv := range g.env {
		if !slices.ContainsFunc(ignored, func(name string) bool { return strings.HasPrefix(kv, name) }) {
			key = append(key, kv)
		}
	}
	return strings.Join(key, "\x00")
}

// variables is the environment of the runner's commands.
func (g Runner) variables() map[string]string {
	env := map[string]string{}
	for _, kv := range g.env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}

// configFiles are the files that git reads the configuration from, if they exist, without those that other settings name.
func (g Runner) configFiles() map[string]os.FileInfo {
	if g.known == nil || g.common == "" {
		return nil
	}
	env := g.variables()
	paths := []string{filepath.Join(g.common, "config"), "/etc/gitconfig"}
	if system, ok := env["GIT_CONFIG_SYSTEM"]; ok {
		paths[1] = system
	}
	if global, ok := env["GIT_CONFIG_GLOBAL"]; ok {
		paths = append(paths, global)
	} else {
		paths = append(paths, filepath.Join(env["HOME"], ".gitconfig"), filepath.Join(env["HOME"], ".config", "git", "config"),
			filepath.Join(env["XDG_CONFIG_HOME"], "git", "config"))
	}
	files := map[string]os.FileInfo{}
	for _, path := range paths {
		files[path], _ = os.Stat(path)
	}
	return files
}

// keep stores settings that were read after these looks at the files, unless others can have a part in them.
func (k *known) keep(g Runner, settings []Located, files map[string]os.FileInfo) {
	if files == nil {
		return
	}
	for _, s := range settings {
		section, _, _ := s.Split()
		if section == "include" || section == "includeif" || s.Name == "extensions.worktreeconfig" {
			return
		}
		if _, seen := files[s.Origin]; !seen { // the system's, where it is not at its usual place
			files[s.Origin], _ = os.Stat(s.Origin)
		}
	}
	for _, info := range files {
		if info != nil && time.Since(info.ModTime()) < settled {
			return
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.kept) >= mostKept {
		clear(k.kept)
	}
	k.kept[g.configKey()] = &kept{settings: settings, files: files}
}

// of is what is kept for the runner and still holds; nil: nothing.
func (k *known) of(g Runner) *kept {
	if k == nil || g.common == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.kept[g.configKey()]
	if kept == nil {
		return nil
	}
	for path, was := range kept.files {
		now, _ := os.Stat(path)
		if (now == nil) != (was == nil) || now != nil && (!os.SameFile(now, was) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime())) {
			delete(k.kept, g.configKey())
			return nil
		}
	}
	return kept
}

// Files lists all files of a commit, as git ls-tree -r -z does. A run asks several times for those of its base: a short list is kept.
func (g Runner) Files(ctx context.Context, commit string) (string, error) {
	if g.known != nil {
		g.known.mu.Lock()
		list := g.known.lists[commit]
		g.known.mu.Unlock()
		if list != "" {
			return list, nil
		}
	}
	list, err := g.Out(ctx, "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)
	if err == nil && g.known != nil && IsObject(commit) && len(list) <= longestList {
		g.known.mu.Lock()
		defer g.known.mu.Unlock()
		if g.known.lists == nil || len(g.known.lists) >= mostLists {
			g.known.lists = map[string]string{}
		}
		g.known.lists[commit] = list
	}
	return list, err
}

// WithIdent makes sure that git knows a name for commits: the user's own, or ralph's where none is configured.
func (g Runner) WithIdent(ctx context.Context) (Runner, error) {
	config, err := g.Config(ctx)
	if err != nil {
		return g, err
	}
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		if !g.identTold(config, role) {
			g = g.With("GIT_"+role+"_NAME="+selfName, "GIT_"+role+"_EMAIL="+selfEmail)
		}
	}
	return g, nil
}

// KnowsIdent reports whether the user has told git a name and an address for commits. What git would guess does not count.
func (g Runner) KnowsIdent(ctx context.Context) (bool, error) {
	config, err := g.Config(ctx)
	return err == nil && g.identTold(config, "AUTHOR") && g.identTold(config, "COMMITTER"), err
}

// identTold reports whether the environment or the configuration gives the role a name and an address. A value of nothing but
// signs that git leaves out of names does not count.
func (g Runner) identTold(config Config, role string) bool {
	env := g.variables()
	for _, what := range []string{"name", "email"} {
		value, set := env["GIT_"+role+"_"+strings.ToUpper(what)]
		if !set {
			value = cmp.Or(config.Get(strings.ToLower(role)+"."+what), config.Get("user."+what))
		}
		if !strings.ContainsFunc(value, func(r rune) bool { return r > ' ' && !strings.ContainsRune(`.,:;<>"\'`, r) }) {
			return false
		}
	}
	return true
}
