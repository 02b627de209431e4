package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/worktree/reuse"
)

// known keeps what the configuration of repositories says for as long as none of its files changes. A process of git costs
// more than all of these looks at files.
type known struct {
	mu   sync.Mutex
	kept map[string]*kept // by repository and environment
}

// kept is one configuration as it was read.
type kept struct {
	settings []Located
	files    map[string]os.FileInfo // that can have a part in it; nil: there is none
	idents   map[string]bool        // roles, and whether git knows a name for them; guarded by known.mu
}

const (
	mostKept = 16                     // configurations
	settled  = 100 * time.Millisecond // the age from which a file's time tells each change of it
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

// configFiles are the files that git reads the configuration from, if they exist, without those that other settings name.
func (g Runner) configFiles() map[string]os.FileInfo {
	if g.known == nil || g.common == "" {
		return nil
	}
	env := map[string]string{}
	for _, kv := range g.env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	paths := []string{filepath.Join(g.common, "config"), "/etc/gitconfig"}
	if system, ok := env["GIT_CONFIG_SYSTEM"]; ok {
		paths[1] = system
	}
	if global, ok := env["GIT_CONFIG_GLOBAL"]; ok {
		paths = append(paths, global)
	} else {
		home := env["HOME"]
		paths = append(paths, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config"),
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
	k.kept[g.configKey()] = &kept{settings: settings, files: files, idents: map[string]bool{}}
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

// WithIdent makes sure that git knows a name for commits: the user's own, or ralph's where none is configured.
func (g Runner) WithIdent(ctx context.Context) (Runner, error) {
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		known, err := g.knowsIdent(ctx, role)
		if err != nil {
			return g, err
		}
		if !known {
			g = g.With("GIT_"+role+"_NAME="+selfName, "GIT_"+role+"_EMAIL="+selfEmail)
		}
	}
	return g, nil
}

// KnowsIdent reports whether the user has told git a name and an address for commits. What git would guess does not count.
func (g Runner) KnowsIdent(ctx context.Context) (bool, error) {
	author, err := g.knowsIdent(ctx, "AUTHOR")
	if err != nil || !author {
		return false, err
	}
	return g.knowsIdent(ctx, "COMMITTER")
}

func (g Runner) knowsIdent(ctx context.Context, role string) (bool, error) {
	kept := g.known.of(g)
	if known, ok := g.known.ident(kept, role); ok {
		return known, nil
	}
	strict := g.With("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.useConfigOnly", "GIT_CONFIG_VALUE_0=true")
	_, err := strict.Out(ctx, "var", "GIT_"+role+"_IDENT")
	if err != nil && !Failed(err) {
		return false, fmt.Errorf("find the name for commits: %w", err)
	}
	g.known.noteIdent(kept, role, err == nil)
	return err == nil, nil
}

func (k *known) ident(kept *kept, role string) (known, ok bool) {
	if kept == nil {
		return false, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok = kept.idents[role]
	return known, ok
}

func (k *known) noteIdent(kept *kept, role string, known bool) {
	if kept == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kept.idents[role] = known
}
