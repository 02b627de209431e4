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

	"github.com/ralph-pool/ralph/worktree/git/internal/seen"
	"github.com/ralph-pool/ralph/worktree/internal/reuse"
)

// cache caches configurations until one of their files changes, and the file lists of the last commits. Checking all these
// files costs less than one git process.
type cache struct {
	mu      sync.Mutex
	configs map[string]*cachedConfig // by repository and environment
	lists   map[string]string        // file lists of commits; see Files
	refs    seen.Files               // files of refs
}

// seenRefs returns the files of refs that earlier calls have read; nil without a cache.
func (k *cache) seenRefs() *seen.Files {
	if k == nil {
		return nil
	}
	return &k.refs
}

// cachedConfig is a cached configuration.
type cachedConfig struct {
	settings []LocatedSetting
	files    map[string]os.FileInfo // files that may contain settings; nil: the file does not exist
}

const (
	maxConfigs   = 16                     // number of configurations
	maxLists     = 4                      // number of file lists
	maxListBytes = 1 << 20                // bytes of each list
	minFileAge   = 100 * time.Millisecond // age from which a file's time reveals every change of the file
)

// WithCache makes the runner, and all runners derived from it, read a configuration again only after one of its files has
// changed, and reuse processes for a short time.
func (g Runner) WithCache() Runner {
	g.cache, g.processes = &cache{configs: map[string]*cachedConfig{}}, &reuse.Processes{}
	return g
}

// ShareCache makes the runner share the caches of another.
func (g Runner) ShareCache(other Runner) Runner {
	g.cache, g.processes = other.cache, other.processes
	return g
}

// configKey identifies the configuration that the runner's commands read. The worktrees of a repository share one: a
// configuration with settings per worktree is not cached.
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

// variables returns the environment of the runner's commands.
func (g Runner) variables() map[string]string {
	env := map[string]string{}
	for _, kv := range g.env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}

// configFiles returns the files from which git reads the configuration, without files that other settings include. Missing
// files have a nil value.
func (g Runner) configFiles() map[string]os.FileInfo {
	if g.cache == nil || g.common == "" {
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

// store caches settings that were read after examining files, unless other files may contribute.
func (k *cache) store(g Runner, settings []LocatedSetting, files map[string]os.FileInfo) {
	if files == nil {
		return
	}
	for _, s := range settings {
		section, _, _ := s.Split()
		if section == "include" || section == "includeif" || s.Name == "extensions.worktreeconfig" {
			return
		}
		if _, seen := files[s.Origin]; !seen { // the system's file in an unusual place
			files[s.Origin], _ = os.Stat(s.Origin)
		}
	}
	for _, info := range files {
		if info != nil && time.Since(info.ModTime()) < minFileAge {
			return
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.configs) >= maxConfigs {
		clear(k.configs)
	}
	k.configs[g.configKey()] = &cachedConfig{settings: settings, files: files}
}

// lookup returns the cached configuration of the runner if it is still valid, or nil.
func (k *cache) lookup(g Runner) *cachedConfig {
	if k == nil || g.common == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	config := k.configs[g.configKey()]
	if config == nil {
		return nil
	}
	for path, old := range config.files {
		now, _ := os.Stat(path)
		if (now == nil) != (old == nil) || now != nil && (!os.SameFile(now, old) || now.Size() != old.Size() || !now.ModTime().Equal(old.ModTime())) {
			delete(k.configs, g.configKey())
			return nil
		}
	}
	return config
}

// Files lists all files of a commit in the format of git ls-tree -r -z. A run asks for the files of its base several times,
// so short lists are cached.
func (g Runner) Files(ctx context.Context, commit string) (string, error) {
	if g.cache != nil {
		g.cache.mu.Lock()
		list := g.cache.lists[commit]
		g.cache.mu.Unlock()
		if list != "" {
			return list, nil
		}
	}
	list, err := g.Output(ctx, "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)
	if err == nil && g.cache != nil && IsObject(commit) && len(list) <= maxListBytes {
		g.cache.mu.Lock()
		defer g.cache.mu.Unlock()
		if g.cache.lists == nil || len(g.cache.lists) >= maxLists {
			g.cache.lists = map[string]string{}
		}
		g.cache.lists[commit] = list
	}
	return list, err
}

// WithIdent makes sure that git has a name for commits: the user's own, or ralph's if none is configured.
func (g Runner) WithIdent(ctx context.Context) (Runner, error) {
	config, err := g.Config(ctx)
	if err != nil {
		return g, err
	}
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		if !g.isIdentSet(config, role) {
			g = g.With("GIT_"+role+"_NAME="+selfName, "GIT_"+role+"_EMAIL="+selfEmail)
		}
	}
	return g, nil
}

// HasIdent reports whether the user has configured a name and an address for commits. A guess of git's does not count.
func (g Runner) HasIdent(ctx context.Context) (bool, error) {
	config, err := g.Config(ctx)
	return err == nil && g.isIdentSet(config, "AUTHOR") && g.isIdentSet(config, "COMMITTER"), err
}

// isIdentSet reports whether the environment or the configuration sets a name and an address for the role. A value made only
// of characters that git strips from names does not count.
func (g Runner) isIdentSet(config Config, role string) bool {
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
